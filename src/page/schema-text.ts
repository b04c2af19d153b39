/** Translates between values of an operation's input and texts in form fields. */

export interface Schema {
  type?: string | string[]
  enum?: unknown[]
  items?: Schema
  $ref?: string
  default?: unknown
  description?: string
  properties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  required?: string[]
}

/** Messages by path of the property, such as `settings.name` or `events[0]`. */
export type Faults = Record<string, string[]>

export const fieldOf = (path: string) => path.split(/[.[]/)[0]!

/** Throws the same kind of error as an answer of the server. */
export const refuse = (errors: Faults): never => {
  throw Object.assign(new Error(Object.values(errors).flat().join(', ')), { errors })
}

export type FormKind =
  | 'choice'
  | 'choices'
  | 'date'
  | 'flag'
  | 'group'
  | 'json'
  | 'lines'
  | 'number'
  | 'pairs'
  | 'reference'
  | 'text'

const typeOf = ({ type }: Schema) => [type].flat().find((each) => each !== 'null')
const mayBeNull = ({ type }: Schema) => type === undefined || [type].flat().includes('null')

/** `hasChoices`: the screen has a list of values to choose from. */
export function formKindOf(name: string, schema: Schema, hasChoices = false): FormKind {
  const type = typeOf(schema)
  const members = Object.entries(schema.properties ?? {})
  if (type === 'array') return hasChoices ? 'choices' : 'lines'
  if (type === 'boolean') return 'flag'
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'object' && members.length === 1 && members[0]![0] === 'id') return 'reference'
  if (type === 'object' && members.length > 0 && members.every(([, each]) => typeOf(each) === 'string'))
    return 'group'
  if (type === 'object') return 'pairs'
  if (hasChoices || schema.enum !== undefined) return 'choice'
  if (type !== 'string') return 'json'
  return name.endsWith('_at') ? 'date' : 'text'
}

/** For example `Destination URL` for `destination_url`, `Expires` for `expires_at`. */
export function describeName(name: string): string {
  const words = name
    .replace(/_at$/, '')
    .replaceAll('_', ' ')
    .replace(/\burl\b/, 'URL')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

export function textOf(kind: FormKind, value: unknown): string {
  if (value === undefined || value === null) return ''
  if (kind === 'lines') return (value as unknown[]).join('\n')
  if (kind === 'pairs')
    return Object.entries(value)
      .map((pair) => pair.join('='))
      .join('\n')
  if (kind === 'reference') return String((value as { id: unknown }).id)
  if (kind === 'date') return String(value).slice(0, 19)
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)
}

interface FieldToRead {
  name: string
  kind: FormKind
  schema: Schema
  /** The initial value of the field. */
  value: unknown
  isText: boolean
  isPatch: boolean
}

/**
 * Undefined if the field is empty, if the field is unchanged in a patch, or if the form lacks the field because the
 * stored value stays.
 */
export function readField(data: FormData, field: FieldToRead): { value: unknown } | undefined {
  const { name, kind, schema, value, isPatch } = field
  if (kind === 'flag') {
    const isOn = data.has(name)
    return isPatch && isOn === (value === true) ? undefined : { value: isOn }
  }
  if (kind === 'group') return readGroup(data, field)
  if (kind === 'choices') return { value: data.getAll(name) }
  if (!data.has(name)) return undefined
  const text = String(data.get(name)).replaceAll('\r\n', '\n')
  if (isPatch && text === textOf(kind, value)) return undefined
  if (text.trim() === '') return isPatch && mayBeNull(schema) ? { value: null } : emptied(kind, isPatch)
  return { value: parse(text, field) }
}

const emptied = (kind: FormKind, isPatch: boolean) =>
  isPatch ? { value: kind === 'lines' ? [] : '' } : undefined

function readGroup(data: FormData, { name, schema }: FieldToRead) {
  const names = Object.keys(schema.properties ?? {})
  const entries = names.map((each) => [each, data.get(`${name}.${each}`)] as const)
  return { value: Object.fromEntries(entries.filter(([, text]) => text !== null && text !== '')) }
}

function parse(text: string, { name, kind, value, isText, isPatch }: FieldToRead): unknown {
  const lines = () =>
    text
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
  if (kind === 'number') return Number(text)
  if (kind === 'date') return new Date(`${text}Z`).toISOString()
  if (kind === 'reference') return { id: text }
  if (kind === 'lines') return lines()
  if (kind === 'pairs') return parsePairs(name, lines(), isPatch ? (value as object | undefined) : undefined)
  return kind === 'json' && !isText ? parseJson(name, text) : text
}

/** `before`: the stored pairs. Null removes each name of `before` that has no line. */
function parsePairs(name: string, lines: string[], before: object = {}): Record<string, string | null> {
  const removed = Object.keys(before).map((each) => [each, null] as const)
  const given = lines.map((line) => {
    const [, key, text] = /^([^=]+)=(.*)$/.exec(line) ?? refuse({ [name]: [`needs NAME=value in “${line}”`] })
    return [key!.trim(), text!] as const
  })
  return Object.fromEntries([...removed, ...given])
}

/** A text that does not begin like JSON, or that begins like an expression, is valid too. */
function parseJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (/^\s*(?:\[|\{(?!\{)|")/.test(text)) refuse({ [name]: [`is not JSON: ${(error as Error).message}`] })
    return text
  }
}
