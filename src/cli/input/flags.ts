import { parseJson, tryJson } from '../../domain/json/json.js'
import { suggestName } from '../../domain/text/nearest.js'
import { CofferError, usage } from '../../errors.js'
import { isPaged } from '../../framework/page.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import { readText, type Schema } from '../../framework/schema.js'
import type { Options } from '../context.js'
import { display, truncate } from '../output/display.js'
import { shortFormOf } from '../short-forms.js'

const MAX_SHOWN = 50

type FlagShape = 'text' | 'list' | 'map' | 'json' | 'boolean'

export interface Flag {
  property: string
  name: string
  key: string
  shape: FlagShape
  schema: Schema
  isRequired: boolean
  /** If one of these properties is given, the property of this flag is not required. */
  unless?: readonly string[] | undefined
  isStored: boolean
  /** Whether a value is read as text although its schema allows any JSON. */
  isText?: boolean
}

export function listFlags({ input, positionals, endpoint }: RegisteredOperation): Flag[] {
  const { properties = {}, required = [] } = input
  const isPositional = (property: string) => positionals.includes(property)
  const isInPath = (property: string) => endpoint?.parameters.includes(property) === true
  const isOfPath = (property: string) => endpoint === undefined || isInPath(property)
  return Object.entries(properties as Record<string, Schema>)
    .filter(([property]) => (isPositional(property) ? !isOfPath(property) : !isInPath(property)))
    .map(([property, schema]) => ({
      ...toFlag(property, schema),
      isRequired: required.includes(property) || schema.requiredUnless !== undefined,
      unless: schema.requiredUnless,
      isStored: endpoint !== undefined && Object.hasOwn(endpoint.body, property),
    }))
}

export function toFlag(property: string, schema: Schema): Flag {
  const word = (schema.flag ?? property).replaceAll('_', '-')
  const known = { property, name: `--${word}`, key: keyOf(word), schema }
  return { ...known, shape: shapeOf(schema), isRequired: true, isStored: false }
}

export function keyOf(word: string): string {
  return word.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function shapeOf(schema: Schema): FlagShape {
  if (schema.type === undefined) return 'json'
  if (schema.type === 'array') return 'list'
  if (schema.type === 'boolean') return 'boolean'
  if (schema.type !== 'object') return 'text'
  return schema.properties === undefined ? 'map' : 'json'
}

export function isTextOf({ schema }: Flag, given: Options): boolean {
  const conditions = Object.entries(schema.cli?.textWhere ?? {})
  return conditions.some(([name, values]) => values.includes(given[name] as string))
}

export function lacks(given: Options, { isRequired, property, unless }: Flag): boolean {
  return isRequired && given[property] === undefined && !unless?.some((other) => given[other] !== undefined)
}

export function listArgs(definition: RegisteredOperation): [name: string, description: string][] {
  const { positionals, input, endpoint } = definition
  const { properties = {}, required = [] } = input
  return positionals.map((name, at) => {
    const isMany = takesMany(definition) && at === positionals.length - 1
    const word = name.replaceAll('_', '-') + (isMany ? '...' : '')
    const { description: text = '' } = properties[name] as Schema
    const more = isMany
      ? ' Give several, separated by spaces, or - to read them from the lines of standard input.'
      : ''
    // An argument that also has a flag may be given as this flag instead.
    const isArg = endpoint === undefined || endpoint.parameters.includes(name)
    return [isArg && required.includes(name) ? `<${word}>` : `[${word}]`, text + more]
  })
}

/** Whether the last argument takes several values. In a list command, this argument is a filter with a single value. */
export function takesMany({ endpoint, cli, positionals, input }: RegisteredOperation): boolean {
  if ((endpoint === undefined && cli?.form === undefined) || positionals.length === 0) return false
  return (endpoint?.parameters ?? []).length > 0 || !isPaged(input)
}

/** Whether the command creates a record from each line of its input. */
export function takesSeveralBodies({ http, endpoint }: RegisteredOperation): boolean {
  return http?.status === 201 && endpoint?.takesBody === true && http.body?.whole === undefined
}

export function readFlag(flag: Flag, texts: readonly string[]): unknown {
  const { name, shape, schema, isText = false } = flag
  for (const text of texts) requirePossible(name, schema.type === 'array' ? schema.items : schema, text)
  if (shape === 'list') {
    const items = schema.type === 'array' ? schema.items : schema
    if (items.shortForm !== undefined) return readShortForms(name, texts, items)
    return texts.map((text) => (isJson(items) ? readJson(name, text, items) : readText(items, text)))
  }
  if (shape === 'map') return readMap(flag, texts)
  const [text = '', ...others] = texts
  // Commander accepts the flag several times if the flag is repeatable in another form of the command.
  if (others.length > 0) throw usage(`${name} may be given only once.`)
  if (schema.refersTo !== undefined && shape === 'json' && !BEGINS_AS_JSON.test(text)) return { id: text }
  if (shape === 'text') return schema.nullable && text === 'null' ? null : readText(schema, text)
  // Text that begins like JSON but is invalid is not read as plain text, so that `readJson` reports the error.
  const isPlain = !BEGINS_AS_JSON.test(text) && (isText || tryJson(text) === undefined)
  return schema.type === undefined && isPlain ? text : readJson(name, text, schema)
}

/** Each text is a short form, a JSON object or a JSON array. @throws CofferError `usage`, with the name of the flag */
function readShortForms(name: string, texts: readonly string[], items: Schema): unknown[] {
  const values: unknown[] = []
  for (const text of texts) {
    if (BEGINS_AS_JSON.test(text)) values.push(...[readJson(name, text, items)].flat())
    else values.push(...about(name, () => shortFormOf(items)!.parse(text, values)))
  }
  return values
}

/** @throws CofferError `usage` for an impossible value, with the nearest value and all possible values */
function requirePossible(name: string, { closed, suggestions = [] }: Schema, text: string): void {
  if (closed === undefined) return
  const values = closed === 'list' ? text.split(',').map((value) => value.trim()) : [text]
  // The later validation reports an empty value.
  const wrong = values.find((value) => value !== '' && !suggestions.includes(value))
  if (wrong === undefined) return
  const shown = truncate(display(wrong), MAX_SHOWN)
  throw usage(
    `${name} must be one of ${suggestions.join(', ')}, not "${shown}"${suggestName(wrong, suggestions) || '.'}`,
  )
}

/** Matches the start of an array, a string or an object. Two braces start an expression instead of an object. */
export const BEGINS_AS_JSON = /^\s*(?:["[]|\{(?!\{))/

function isJson({ type }: Schema): boolean {
  return type === undefined || type === 'object' || type === 'array'
}

function about<T>(name: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    throw usage(`${name} ${error.message}`, { cause: error })
  }
}

function readJson(name: string, text: string, { type }: Schema = {}): unknown {
  try {
    return parseJson(text, { source: name, code: 'usage' })
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    const hint = type || BEGINS_AS_JSON.test(text) ? '' : ` Give text as a JSON string: ${name} '"…"'.`
    throw usage(`${error.message}.${hint}`, { cause: error })
  }
}

/** Parses `key=value` entries and JSON objects. @throws CofferError `usage`, with the name of the flag */
export function readMap(
  { name, schema, isStored }: Pick<Flag, 'name' | 'schema' | 'isStored'>,
  texts: readonly string[],
): Record<string, unknown> {
  const values = schema.type === 'object' ? (schema.additionalProperties as Schema) : {}
  const entries = texts.flatMap((text): [string, unknown][] => {
    if (/^\s*\{/.test(text)) return Object.entries(readJson(name, text) as object)
    const at = text.indexOf('=')
    if (at < 1 || /^\s*\[/.test(text)) throw usage(`${name} takes key=value or a JSON object: customer=42.`)
    const [key, value] = [text.slice(0, at), text.slice(at + 1)]
    // In the body of an update, null removes an entry. If null is not allowed, the validation refuses it.
    return [[key, value === 'null' && values.type === 'string' && isStored ? null : value]]
  })
  const keys = new Set(entries.map(([key]) => key))
  if (keys.has('__proto__')) throw usage(`${name}: __proto__ is not allowed as a key.`)
  if (keys.size < entries.length) throw usage(`${name} has a key twice.`)
  return Object.fromEntries(entries)
}
