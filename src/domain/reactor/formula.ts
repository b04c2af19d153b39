import type { PropertyErrors } from '../../errors.js'
import { isObject } from '../json/json.js'
import type { Lenient } from '../omit-undefined.js'
import { addError, refuseErrors } from '../property-errors.js'

export const FORMULA_TYPES = ['official', 'private'] as const
export const MAX_DESCRIPTION_LENGTH = 1_000
export const MAX_ICON_LENGTH = 50_000
export const MAX_CODE_BYTES = 256 * 1024
export const MAX_ELEMENTS = 100

export interface FormulaBody {
  name: string
  description?: string
  type: (typeof FORMULA_TYPES)[number]
  icon?: string
  code: string
  configuration: ConfigurationElement[]
  request_parameters: ParameterElement[]
}

const ICON = /^data:image\/(png|jpe?g);\s*base64\s*,\s*([A-Za-z0-9+/]+={0,2})$/
/** The first bytes of image types. If no signature matches, the declared type is accepted. */
const SIGNATURES: Readonly<Record<string, string>> = {
  png: '\x89PNG\r\n\x1a\n',
  jpeg: '\xff\xd8\xff',
  gif: 'GIF8',
  webp: 'RIFF',
}

export function checkFormula(given: Lenient<FormulaBody>): void {
  const { icon, code, configuration = [], request_parameters = [] } = given
  const errors: PropertyErrors = {}
  if (new TextEncoder().encode(code).length > MAX_CODE_BYTES)
    addError(errors, 'code', `must have at most ${MAX_CODE_BYTES} bytes`)
  if (icon !== undefined && !isIcon(icon))
    addError(errors, 'icon', 'must be a data URL with base64 of a PNG or JPEG image: data:image/png;base64,…')
  checkContract(errors, configuration, request_parameters)
  refuseErrors(errors)
}

function isIcon(text: string): boolean {
  const [, type, base64 = ''] = ICON.exec(text) ?? []
  if (type === undefined || base64.length % 4 !== 0) return false
  // 24 characters encode 18 bytes, which is enough for every signature.
  const begins = (name: string) => atob(base64.slice(0, 24)).startsWith(SIGNATURES[name]!)
  const found = Object.keys(SIGNATURES).find(begins)
  return found === undefined || found === type.replace('jpg', 'jpeg')
}

export const VALUE_TYPES = ['string', 'boolean', 'number'] as const
type ValueType = (typeof VALUE_TYPES)[number]
type Value = string | boolean | number

export interface ConfigurationElement {
  name: string
  description?: string
  type: ValueType
}

/** Dots in the name of a parameter separate the levels of nested objects. */
export type ParameterElement = ConfigurationElement & { optional?: boolean }

type Json = Record<string, unknown>

const NAME = /^[A-Za-z0-9_-]+$/
export function isConfigurationName(name: string): boolean {
  return NAME.test(name) && name !== '__proto__'
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

export function checkContract(
  errors: PropertyErrors,
  configuration: Lenient<ConfigurationElement[]>,
  parameters: Lenient<ParameterElement[]>,
): void {
  checkNames(errors, 'configuration', configuration, (name) => NAME.test(name))
  checkNames(errors, 'request_parameters', parameters, (name) =>
    name.split('.').every((level) => NAME.test(level)),
  )
  const names = parameters.map((parameter) => parameter?.name ?? '')
  for (const [index, name] of names.entries())
    if (names.some((other) => other !== '' && name.startsWith(`${other}.`)))
      addError(errors, `request_parameters[${index}].name`, 'is inside another parameter')
}

function checkNames(
  errors: PropertyErrors,
  property: string,
  elements: Lenient<ConfigurationElement[]>,
  isSpelled: (name: string) => boolean,
): void {
  const seen = new Set<string>()
  elements.forEach((element, index) => {
    const name = element?.name
    if (name === undefined) return
    const path = `${property}[${index}].name`
    const dots = property === 'configuration' ? '' : ', with dots between levels'
    if (!isSpelled(name)) addError(errors, path, `must be letters, digits, _ and -${dots}`)
    else if (name.split('.').includes('__proto__')) addError(errors, path, 'cannot be __proto__')
    if (seen.has(name)) addError(errors, path, 'occurs twice')
    seen.add(name)
  })
}

/**
 * Casts text to a number if the text is a JSON number, and to a boolean if the text is `true` or `false` in upper or
 * lower case. Returns undefined if the value cannot be cast.
 */
export function castValue(value: unknown, type: ValueType): Value | undefined {
  if (typeof value === type) return value as Value
  if (type === 'string')
    return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
  if (typeof value !== 'string') return undefined
  if (type === 'boolean') {
    const word = value.toLowerCase()
    return word === 'true' || (word === 'false' ? false : undefined)
  }
  const number = JSON_NUMBER.test(value) ? Number(value) : Number.NaN
  return Number.isFinite(number) ? number : undefined
}

export function castConfiguration(contract: readonly ConfigurationElement[], values: Readonly<Json>) {
  const errors: PropertyErrors = {}
  const cast: Record<string, Value> = {}
  for (const element of contract) {
    const value = castElement(errors, 'configuration', element, readPath(values, [element.name]))
    if (value !== undefined) cast[element.name] = value
  }
  for (const name of Object.keys(values))
    if (!contract.some((element) => element.name === name))
      addError(errors, `configuration.${name}`, 'is not declared by the formula')
  refuseErrors(errors)
  return cast
}

function castElement(errors: PropertyErrors, at: string, element: ParameterElement, value: unknown) {
  const { name, type, optional = false } = element
  const isMissing = value === undefined || value === null
  const cast = isMissing ? undefined : castValue(value, type)
  if (cast === undefined && !(isMissing && optional))
    addError(errors, `${at}.${name}`, isMissing ? 'is required' : `must be a ${type}`)
  return cast
}

export function toTexts(values: Readonly<Record<string, Value>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]))
}

export function castArguments(
  parameters: readonly ParameterElement[],
  args: Readonly<Json>,
  undeclared: 'forward' | 'strip',
): Json {
  const errors: PropertyErrors = {}
  const cast: Json = undeclared === 'forward' ? structuredClone(args) : {}
  for (const parameter of parameters) {
    const levels = parameter.name.split('.')
    const given = readPath(args, levels)
    const value = castElement(errors, 'args', parameter, given)
    if (value !== undefined || given === null) writePath(cast, levels, value)
  }
  refuseErrors(errors)
  return cast
}

function readPath(value: unknown, levels: readonly string[]): unknown {
  return levels.reduce<unknown>(
    (inner, level) => (isObject(inner) && Object.hasOwn(inner, level) ? inner[level] : undefined),
    value,
  )
}

function writePath(target: Json, levels: readonly string[], value: Value | undefined): void {
  let inner = target
  for (const level of levels.slice(0, -1)) {
    if (!isObject(inner[level]) && value === undefined) return
    if (!isObject(inner[level])) inner[level] = {}
    inner = inner[level] as Json
  }
  if (value === undefined) delete inner[levels.at(-1)!]
  else inner[levels.at(-1)!] = value
}
