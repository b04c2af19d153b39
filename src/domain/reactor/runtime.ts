import type { FailureStatus, PropertyErrors } from '../../errors.js'
import { type Permission, permissionsOf } from '../access/permissions.js'
import { isObject } from '../json/json.js'
import { type Lenient, omitUndefined } from '../omit-undefined.js'
import { addError } from '../property-errors.js'
import { isPackageName } from './dependencies.js'
import { MAX_ELEMENTS } from './formula.js'

export const DEFAULT_IMAGE = 'node-bt'
export const IMAGES = [DEFAULT_IMAGE, 'node22', 'node24'] as const
export type Image = (typeof IMAGES)[number]

/**
 * Code with a configurable image has exactly the `permissions` of its runtime, even if the reactor or proxy has an
 * application.
 */
export function isConfigurable(image: Image | undefined): boolean {
  return image !== undefined && image !== DEFAULT_IMAGE
}

export const RESOURCES = ['standard', 'large', 'xlarge'] as const
const MEMORY_FACTORS = { standard: 1, large: 2, xlarge: 4 } as const

export function memoryFactorOf(runtime: RuntimeOptions | undefined): number {
  if (!isConfigurable(runtime?.image)) return 1
  // Records of earlier versions may have any text in `resources`.
  return MEMORY_FACTORS[runtime?.resources ?? 'standard'] ?? 1
}

/** Returns seconds. With node-bt, `timeout` can only lower the default. */
export function timeLimitOf(runtime: RuntimeOptions | undefined, isAsync: boolean): number {
  const { image, timeout } = runtime ?? {}
  if (isConfigurable(image)) return timeout ?? DEFAULT_TIMEOUT
  const most = isAsync ? LEGACY_ASYNC_TIMEOUT : LEGACY_TIMEOUT
  return Math.min(timeout ?? most, most)
}

/** The HTTP status if the code fails without choosing a status. */
export function failureStatusOf(image: Image | undefined): FailureStatus {
  return isConfigurable(image) ? 502 : 500
}

/** Timeouts are in seconds. */
export const MAX_TIMEOUT = 30
export const MAX_ASYNC_TIMEOUT = 900
const DEFAULT_TIMEOUT = 10
/** The limits of node-bt. */
const LEGACY_TIMEOUT = 30
const LEGACY_ASYNC_TIMEOUT = 300

export const MAX_WARM_CONCURRENCY = 100
export const MAX_RUNTIME_PERMISSIONS = 100
export const MAX_VERSION_CHARACTERS = 200

/** Options that have no effect with the image are stored too. */
export interface RuntimeOptions {
  image: Image
  /** In seconds. See {@link timeLimitOf}. */
  timeout?: number
  resources?: (typeof RESOURCES)[number]
  /** If true, a call starts a run and does not wait for the result. Only for configurable images. */
  async?: boolean
  /** Maps package names to versions. Only configurable images use dependencies. */
  dependencies?: Record<string, string>
  permissions?: Permission[]
}

/** Matches one version, such as 1.2.3 or 1.2.3-beta.1, but no range, tag or address. */
const PINNED_VERSION = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/
const PINNED_EXPECTED = 'must name one version of each package, such as 1.2.3, and no range'

const NAMES_EXPECTED = 'must have the names of npm packages, such as axios or @scope/name'

const isPinned = (version: unknown) => typeof version === 'string' && PINNED_VERSION.test(version)

/** Removes a `timeout` of 0 and empty `resources`, which clients send for absent values. */
export function completeRuntime(
  runtime: Omit<Lenient<RuntimeOptions>, 'resources'> & { resources?: string | undefined },
): RuntimeOptions {
  const { timeout, resources, ...given } = runtime
  const options = { ...given, timeout: timeout || undefined, resources: resources || undefined }
  return { image: DEFAULT_IMAGE, ...(omitUndefined(options) as Partial<RuntimeOptions>) }
}

/**
 * Checks what the schema cannot express. Values may have any type. The limit of `timeout` depends on `async`, which a
 * patch can lack. Therefore this function does not check the limit in a patch.
 */
export function checkReactorRuntime(runtime: unknown, errors: PropertyErrors, isPatch: boolean): void {
  if (!isObject(runtime)) return
  for (const attribute of ['dependencies', 'resolutions']) {
    const versions = runtime[attribute]
    if (!isObject(versions)) continue
    if (Object.keys(versions).length > MAX_ELEMENTS)
      addError(errors, `runtime.${attribute}`, `must have at most ${MAX_ELEMENTS} entries`)
    for (const name of Object.keys(versions))
      if (!isPackageName(name)) addError(errors, `runtime.${attribute}`, NAMES_EXPECTED)
    // In a patch, null removes a package. The schema refuses all other values that are not text.
    const texts = Object.values(versions).filter((version) => typeof version === 'string')
    if (!texts.every(isPinned)) addError(errors, `runtime.${attribute}`, PINNED_EXPECTED)
  }
  const { timeout, async: isAsync } = runtime
  // The schema checks the larger limit.
  const isLong = typeof timeout === 'number' && timeout > MAX_TIMEOUT && timeout <= MAX_ASYNC_TIMEOUT
  if (isLong && isAsync !== true && !isPatch)
    addError(errors, 'runtime.timeout', `must be at most ${MAX_TIMEOUT} seconds without async`)
}

const isVersions = (value: unknown) =>
  isObject(value) &&
  Object.keys(value).length <= MAX_ELEMENTS &&
  Object.keys(value).every(isPackageName) &&
  Object.values(value).every(isPinned)
const isWithin = (value: unknown, most: number) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= most
const PRIVATE = permissionsOf('private')

type Rule = [isFit: (value: unknown) => boolean, expected: string]
const VERSIONS: Rule = [
  isVersions,
  `${PINNED_EXPECTED}, with names of npm packages and at most ${MAX_ELEMENTS} entries`,
]
const RULES: Readonly<Record<string, Rule>> = {
  image: [(value) => IMAGES.some((each) => each === value), `must be one of ${IMAGES.join(', ')}`],
  dependencies: VERSIONS,
  resolutions: VERSIONS,
  warm_concurrency: [
    (value) => isWithin(value, MAX_WARM_CONCURRENCY),
    `must be an integer from 0 to ${MAX_WARM_CONCURRENCY}`,
  ],
  timeout: [(value) => isWithin(value, MAX_TIMEOUT), `must be whole seconds from 0 to ${MAX_TIMEOUT}`],
  resources: [(value) => RESOURCES.some((each) => each === value), `must be one of ${RESOURCES.join(', ')}`],
  permissions: [
    (value) =>
      Array.isArray(value) &&
      value.length <= MAX_RUNTIME_PERMISSIONS &&
      value.every((each) => PRIVATE.includes(each)),
    'must be an array of permissions that private applications may have',
  ],
}

/**
 * Reads the `runtime` of a transform. It has the options of a reactor, except `async`. Calls `add` for each invalid
 * option.
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
