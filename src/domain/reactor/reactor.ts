import type { PropertyErrors } from '../../errors.js'
import { type Permission, permissionsOf } from '../access/permissions.js'
import { isObject } from '../json/json.js'
import { type Lenient, omitUndefined } from '../omit-undefined.js'
import { addError, refuseErrors } from '../property-errors.js'
import { MAX_NAME_LENGTH } from '../text/display-name.js'
import { isConfigurationName, MAX_CODE_BYTES, MAX_ELEMENTS } from './formula.js'

export const DEFAULT_IMAGE = 'node-bt'
export const IMAGES = [DEFAULT_IMAGE, 'node22'] as const

/** How the code of a reactor runs. Both images behave alike. Options that have no effect here are stored too. */
export interface RuntimeOptions {
  image: (typeof IMAGES)[number]
  /** In seconds. It can lower the time limit, but never raise it. */
  timeout?: number
  permissions?: Permission[]
}

/** Options that belong into `runtime`, and that the API of other services had beside `runtime`. */
const MISPLACED = 'image dependencies resolutions permissions resources timeout async warm_concurrency'.split(
  ' ',
)

/**
 * Checks what the schema cannot express. Contract: values may have the wrong type.
 * @throws CofferError `validation`
 */
export function checkReactor(given: { readonly [name: string]: unknown }): void {
  const errors: PropertyErrors = {}
  const { code, configuration, runtime } = given
  for (const name of MISPLACED)
    if ((given[name] ?? '') !== '') addError(errors, name, 'is not supported here: it belongs into runtime')
  if (typeof code === 'string' && new TextEncoder().encode(code).length > MAX_CODE_BYTES)
    addError(errors, 'code', `must have at most ${MAX_CODE_BYTES} bytes`)
  checkConfiguration(configuration, errors)
  for (const name of ['dependencies', 'resolutions']) {
    const map = isObject(runtime) ? runtime[name] : undefined
    if (isObject(map) && Object.keys(map).length > MAX_ELEMENTS)
      addError(errors, `runtime.${name}`, `must have at most ${MAX_ELEMENTS} entries`)
  }
  refuseErrors(errors)
}

/** Removes a timeout of 0 and empty resources, which clients send instead of absent values. */
export function completeRuntime(
  runtime: Lenient<RuntimeOptions> & { resources?: string | undefined },
): RuntimeOptions {
  const { timeout, resources, ...given } = runtime
  const options = { ...given, timeout: timeout || undefined, resources: resources || undefined }
  return { image: DEFAULT_IMAGE, ...(omitUndefined(options) as Partial<RuntimeOptions>) }
}

const isTexts = (value: unknown) =>
  isObject(value) && Object.keys(value).length <= MAX_ELEMENTS && Object.values(value).every(isText)
const isText = (value: unknown) => typeof value === 'string' && value.length <= MAX_NAME_LENGTH
const isWithin = (value: unknown, most: number) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= most
const PRIVATE = permissionsOf('private')
const RULES: Readonly<Record<string, [isFit: (value: unknown) => boolean, expected: string]>> = {
  image: [(value) => IMAGES.some((each) => each === value), `must be one of ${IMAGES.join(', ')}`],
  dependencies: [isTexts, `must be an object of text with at most ${MAX_ELEMENTS} entries`],
  resolutions: [isTexts, `must be an object of text with at most ${MAX_ELEMENTS} entries`],
  warm_concurrency: [(value) => isWithin(value, 100), 'must be an integer from 0 to 100'],
  timeout: [(value) => isWithin(value, 600), 'must be an integer from 0 to 600'],
  resources: [isText, `must be text of at most ${MAX_NAME_LENGTH} characters`],
  permissions: [
    (value) => Array.isArray(value) && value.length <= 100 && value.every((each) => PRIVATE.includes(each)),
    'must be an array of permissions that private applications may have',
  ],
}

/**
 * Parses the `runtime` of a transform, which has the options of a reactor except `async`. Calls `add` for
 * each invalid option.
 */
export function readRuntime(given: unknown, add: (name: string, message: string) => void): RuntimeOptions {
  if (!isObject(given)) add('.options.runtime', 'must be an object')
  const { async: isAsync, ...options } = isObject(given) ? given : {}
  const entries = Object.entries(options).filter(([, value]) => (value ?? '') !== '')
  if ((isAsync ?? false) !== false) add('.options.runtime.async', 'is only for reactors')
  for (const [name, value] of entries) {
    const [isFit, expected] = Object.hasOwn(RULES, name) ? RULES[name]! : [() => false, 'is not known here']
    if (!isFit(value)) add(`.options.runtime.${name}`, expected)
  }
  return completeRuntime(Object.fromEntries(entries))
}

export function checkConfiguration(configuration: unknown, errors: PropertyErrors): void {
  for (const [name, value] of Object.entries(isObject(configuration) ? configuration : {})) {
    if (value === null || value === undefined) continue
    if (typeof value === 'object')
      addError(errors, `configuration.${name}`, 'must be a string, a number or a boolean')
    if (!isConfigurationName(name))
      addError(errors, `configuration.${name}`, 'must have a name of letters, digits, _ and -')
  }
}

/**
 * Parses the configuration of a reactor without a formula. Each value becomes text. Null counts as missing.
 * @throws CofferError `validation`
 */
export function readConfiguration(given: Readonly<Record<string, unknown>>): Record<string, string> {
  const errors: PropertyErrors = {}
  const entries = Object.entries(given).filter(([, value]) => value !== null && value !== undefined)
  if (entries.length > MAX_ELEMENTS)
    addError(errors, 'configuration', `must have at most ${MAX_ELEMENTS} entries`)
  checkConfiguration(given, errors)
  refuseErrors(errors)
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]))
}
