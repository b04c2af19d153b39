import type { PropertyErrors } from '../../errors.js'
import { isObject } from '../json/json.js'
import { addError, refuseErrors } from '../property-errors.js'
import { isConfigurationName, MAX_CODE_BYTES, MAX_ELEMENTS } from './formula.js'
import { checkReactorRuntime } from './runtime.js'

/** Options that are valid only inside `runtime`. Ignoring a misplaced option would hide a mistake. */
const MISPLACED = 'image dependencies resolutions permissions resources timeout async warm_concurrency'.split(
  ' ',
)

type Given = { readonly [name: string]: unknown }

/**
 * Checks what the schema cannot express. Values may have any type.
 * @throws CofferError `validation`
 */
export function checkReactor(given: Given): void {
  check(given, false)
}

export function checkReactorPatch(given: Given): void {
  check(given, true)
}

function check(given: Given, isPatch: boolean): void {
  const errors: PropertyErrors = {}
  const { code, configuration, runtime } = given
  for (const name of MISPLACED)
    if ((given[name] ?? '') !== '') addError(errors, name, 'is not supported here: give it in runtime')
  if (typeof code === 'string' && new TextEncoder().encode(code).length > MAX_CODE_BYTES)
    addError(errors, 'code', `must have at most ${MAX_CODE_BYTES} bytes`)
  checkConfiguration(configuration, errors)
  checkReactorRuntime(runtime, errors, isPatch)
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

/** For a reactor without a formula. Each value becomes text, and null counts as missing. */
export function readConfiguration(given: Readonly<Record<string, unknown>>): Record<string, string> {
  const errors: PropertyErrors = {}
  const entries = Object.entries(given).filter(([, value]) => value !== null && value !== undefined)
  if (entries.length > MAX_ELEMENTS)
    addError(errors, 'configuration', `must have at most ${MAX_ELEMENTS} entries`)
  checkConfiguration(given, errors)
  refuseErrors(errors)
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]))
}
