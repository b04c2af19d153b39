import type { PropertyErrors } from '../../errors.js'
import type { Permission } from '../access/permissions.js'
import { isObject } from '../json/json.js'
import { addError, refuseErrors } from '../property-errors.js'
import { isConfigurationName, MAX_CODE_BYTES, MAX_ELEMENTS } from './formula.js'

export const DEFAULT_IMAGE = 'node-bt'
export const IMAGES = [DEFAULT_IMAGE, 'node22'] as const

/** How the code of a reactor runs. Both images are the same here. Options without an effect are stored too. */
export interface RuntimeOptions {
  image: (typeof IMAGES)[number]
  /** Seconds; lowers the time limit, never raises it. */
  timeout?: number
  /** The permissions of the client of a reactor without an application. */
  permissions?: Permission[]
}

/** Attributes of `runtime` that other services once had outside of it. */
const MISPLACED = 'image dependencies resolutions permissions resources timeout async warm_concurrency'.split(
  ' ',
)

/** Checks what the schema cannot say; values may have the wrong type. @throws CofferError `validation` */
export function checkReactor(given: { readonly [name: string]: unknown }): void {
  const errors: PropertyErrors = {}
  const { code, configuration, runtime } = given
  for (const name of MISPLACED)
    if ((given[name] ?? undefined) !== undefined)
      addError(errors, name, 'is not supported here: it belongs into runtime')
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

export function checkConfiguration(configuration: unknown, errors: PropertyErrors): void {
  for (const [name, value] of Object.entries(isObject(configuration) ? configuration : {})) {
    if (value === null || value === undefined) continue
    if (typeof value === 'object')
      addError(errors, `configuration.${name}`, 'must be a string, a number or a boolean')
    if (!isConfigurationName(name))
      addError(errors, `configuration.${name}`, 'must have a name of letters, digits, _ and -')
  }
}

/** Configuration that no formula declares: each value as text; null counts as missing. @throws CofferError `validation` */
export function readConfiguration(given: Readonly<Record<string, unknown>>): Record<string, string> {
  const errors: PropertyErrors = {}
  const entries = Object.entries(given).filter(([, value]) => value !== null && value !== undefined)
  if (entries.length > MAX_ELEMENTS)
    addError(errors, 'configuration', `must have at most ${MAX_ELEMENTS} entries`)
  checkConfiguration(given, errors)
  refuseErrors(errors)
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]))
}
