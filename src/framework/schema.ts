/** The part of JSON Schema for the inputs and outputs of operations, and the TypeScript type of each schema. */
import { isObject } from '../domain/json/json.js'
import { MAX_NAME_LENGTH, NAME_PATTERN } from '../domain/text/display-name.js'
import type { Content, GivenContent } from './content.js'

/** Annotations of any schema. Only `nullable` affects validation. */
interface Annotations {
  description?: string
  /**
   * If true, null is a value. If false, null is refused. By default, null means that an optional property is absent.
   */
  nullable?: boolean
  /**
   * The property is required if all properties with these names are absent. The operation checks this, not the
   * validator.
   */
  requiredUnless?: readonly string[]
  /** Prompts hide the value, no log contains the value, and a command warns if the value is an argument. */
  sensitive?: true
  /** The name of the flag, if it differs from the property. For an array, the name is singular. */
  flag?: string
  component?: string
  /** For an output: the columns of a table, by default all. A dot in a name leads to a nested property. */
  columns?: readonly string[]
  examples?: readonly unknown[]
  /** For an output: a secret that is shown once. Stored answers do not contain the secret. */
  isShownOnce?: true
  /** For an output: returns the value for no-reveal mode. If the result is undefined, the property is left out. */
  inNoReveal?(value: unknown): unknown
  short?: string
  /**
   * The noun of the record that the property identifies. Commands also accept the name of the record or the first
   * characters of its id, if only one record matches.
   */
  refersTo?: string
  /** Values that completion and questions offer. Other values are valid too. */
  suggestions?: readonly string[]
  /**
   * For a filter: only the suggestions are possible values. Commands refuse other values. Over HTTP, other values find
   * nothing. `list`: the text may contain several values, separated by commas.
   */
  closed?: 'value' | 'list'
  cli?: CliAnnotations
  /** The command line reads and shows the value in this form (`cli/short-forms.ts`), and also reads JSON. */
  shortForm?: 'rule'
  /** For a date: commands also take a duration such as 72h, from now (`ahead`) or back from now (`ago`). */
  duration?: 'ahead' | 'ago'
}

export interface CliAnnotations {
  /** The command line makes the path absolute. */
  isPath?: true
  /** The command line asks for the value, although the property has a default. */
  isAsked?: true
  meanings?: Readonly<Record<string, string>>
  /**
   * If another property has one of these values, the command line reads the flag as text, even if the text looks like
   * JSON. The key is the name of the other property.
   */
  textWhere?: Readonly<Record<string, readonly string[]>>
  /** The command line asks for each member that belongs to the value of `property`. */
  membersWhere?: { property: string; values: Readonly<Record<string, Fields>> }
}

export interface StringSchema extends Annotations {
  type: 'string'
  enum?: readonly string[]
  minLength?: number
  maxLength?: number
  /** No other pattern is possible, because the error message describes this pattern. */
  pattern?: typeof NAME_PATTERN
  format?: 'uuid' | 'date-time'
  default?: string
}

export interface NumberSchema extends Annotations {
  type: 'integer' | 'number'
  minimum?: number
  maximum?: number
  default?: number
}

export interface BooleanSchema extends Annotations {
  type: 'boolean'
  default?: boolean
}

export interface ArraySchema extends Annotations {
  type: 'array'
  items: Schema
  maxItems?: number
}

/** `additionalProperties`: false refuses other properties, true ignores them, and a schema makes the object a map. */
export interface ObjectSchema extends Annotations {
  type: 'object'
  properties?: Fields
  required?: readonly string[]
  /**
   * An input must contain at least one of these properties. The operation checks this, not the validator. If all are
   * absent, the command line asks which property to enter.
   */
  needsOneOf?: readonly string[]
  isEmptyAbsent?: true
  additionalProperties: boolean | Schema
  minProperties?: number
  maxProperties?: number
}

type Fields = Readonly<Record<string, Schema>>
type NamesOf<P> = readonly (keyof P & string)[]

export function inputSchema<const P extends Fields, const R extends NamesOf<P>>(required: R, properties: P) {
  return { type: 'object', properties, required, additionalProperties: true } as const
}

export function lenientInput<const P extends Fields, const R extends NamesOf<P>>(required: R, properties: P) {
  return { ...inputSchema(required, properties), isEmptyAbsent: true } as const
}

export function closedInput<const P extends Fields, const R extends NamesOf<P>>(required: R, properties: P) {
  return { type: 'object', properties, required, additionalProperties: false } as const
}

export function idOf(refersTo: string, description: string) {
  return { type: 'string', refersTo, description } as const
}

export function pathOf(description: string) {
  return { type: 'string', minLength: 1, cli: { isPath: true }, description } as const
}

export function textOf<const L extends number>(maxLength: L, description: string) {
  return { type: 'string', minLength: 1, maxLength, description } as const
}

/** A record matches if the record has any of the values. An empty value is refused. */
export function filterBy(description: string, known: Pick<Annotations, 'suggestions' | 'closed'> = {}) {
  const items = { type: 'string', minLength: 1, ...known } as const
  return { type: 'array', items, maxItems: 100, description } as const
}

export function onlyOf(suggestions: readonly string[]) {
  return { suggestions, closed: 'value' } as const
}

export function nameOf(description: string, maxLength = MAX_NAME_LENGTH) {
  return { type: 'string', minLength: 1, maxLength, pattern: NAME_PATTERN, description } as const
}

export const displayName = nameOf('A display name.')
export const nameFilter = textOf(MAX_NAME_LENGTH, 'A part of the name; * matches any text.')

export interface AnySchema extends Annotations {
  type?: never
  enum?: readonly string[]
  /** The value is the content of a file: {@link GivenContent} in an input, {@link Content} in an output. */
  content?: 'given' | 'returned'
}

export type Schema = StringSchema | NumberSchema | BooleanSchema | ArraySchema | ObjectSchema | AnySchema

type PatchOf<S> = S extends { additionalProperties: infer V extends Schema }
  ? Omit<S, 'additionalProperties'> & { additionalProperties: V & { nullable: true } }
  : S

/** Null removes a value or an entry of a map. Null is refused for `required` attributes. */
export function patchOf<P extends Fields, const R extends keyof P = never>(
  attributes: P,
  required: readonly R[] = [],
) {
  type Patched = { [Name in keyof P]: PatchOf<P[Name]> & { nullable: Name extends R ? false : true } }
  return mapValues(attributes, (schema, name) => {
    const { additionalProperties: others } = schema.type === 'object' ? schema : {}
    const map = typeof others === 'object' ? { additionalProperties: { ...others, nullable: true } } : {}
    return { ...schema, ...map, nullable: !required.includes(name as never) }
  }) as unknown as Patched
}

type RequiredNames<S> = S extends { required: readonly (infer R)[] } ? R : never
type Flat<T> = { [K in keyof T]: T[K] }
type Properties<S, P> = Flat<
  { -readonly [K in keyof P as K extends RequiredNames<S> ? K : never]: Infer<P[K]> } & {
    -readonly [K in keyof P as K extends RequiredNames<S> ? never : K]?: Infer<P[K]>
  }
>
type Bare<S> = S extends { enum: readonly (infer E)[] }
  ? E
  : S extends { content: 'given' }
    ? GivenContent
    : S extends { content: 'returned' }
      ? Content
      : BareJson<S>
type BareJson<S> = S extends { type: 'string' }
  ? string
  : S extends { type: 'integer' | 'number' }
    ? number
    : S extends { type: 'boolean' }
      ? boolean
      : S extends { type: 'array'; items: infer I }
        ? Infer<I>[]
        : S extends { type: 'object'; properties: infer P }
          ? Properties<S, P>
          : S extends { type: 'object'; additionalProperties: infer V extends Schema }
            ? Record<string, Infer<V>>
            : S extends { type: 'object' }
              ? Record<string, unknown>
              : unknown

export type Infer<S> = S extends { nullable: true } ? Bare<S> | null : Bare<S>

export type Answer<O> = O extends Schema ? Infer<O> : undefined

export type JsonSchema = Readonly<Record<string, unknown>>

const ANNOTATIONS = new Set(
  (
    'nullable sensitive flag short cli content refersTo duration suggestions closed ' +
    'needsOneOf isEmptyAbsent columns isShownOnce inNoReveal requiredUnless shortForm'
  ).split(' '),
)

/** Returns JSON Schema (2020-12) without the annotations of Coffer. A component becomes a reference. */
export function toJsonSchema(schema: Schema): JsonSchema {
  if (schema.component !== undefined) return { $ref: `#/components/schemas/${schema.component}` }
  const entries = Object.entries(schema).filter(([name]) => !ANNOTATIONS.has(name))
  const out: Record<string, unknown> = Object.fromEntries(entries)
  if (schema.nullable && schema.type !== undefined) {
    out.type = [schema.type, 'null']
    if ('enum' in schema && schema.enum !== undefined) out.enum = [...schema.enum, null]
  }
  if (schema.type === 'array') out.items = toJsonSchema(schema.items)
  if (schema.type === 'object') {
    const { properties, additionalProperties } = schema
    if (properties !== undefined) out.properties = mapValues(properties, (property) => toJsonSchema(property))
    out.additionalProperties =
      typeof additionalProperties === 'boolean' ? additionalProperties : toJsonSchema(additionalProperties)
  }
  return out
}

/** A text that cannot be parsed is returned unchanged, so that validation reports the text. */
export function readText(schema: Schema, text: string): unknown {
  if (schema.type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (schema.type !== 'integer' && schema.type !== 'number') return text
  // Only page numbers have no maximum. A large page number may become inexact, because no list has that many pages.
  if (schema.maximum === undefined && /^\d{16,}$/.test(text)) return Math.min(Number(text), Number.MAX_VALUE)
  const isNumber = /^-?\d{1,15}(\.\d{1,15})?$/.test(text)
  return isNumber ? Number(text) : text
}

/** Adds defaults, and removes nulls and empty texts that mean absent, at every depth. */
export function completeValue(schema: Schema, value: unknown): unknown {
  if (schema.type === 'array')
    return schema.items.type === 'object' ? mapMembers(schema, value, completeValue) : value
  if (schema.type !== 'object' || !isObject(value)) return value
  const { properties = {}, required = [] } = schema
  const complete = { ...value }
  for (const name in properties) {
    const property = properties[name]!
    const isAbsent =
      !required.includes(name) &&
      ((complete[name] === null && property.nullable === undefined) ||
        (complete[name] === '' && schema.isEmptyAbsent === true))
    if (!isAbsent && complete[name] !== undefined) {
      complete[name] = completeValue(property, complete[name])
      continue
    }
    if (name in complete) delete complete[name]
    if ('default' in property) complete[name] = property.default
  }
  return complete
}

/** Removes parts of the wrong type. In an array, these parts become undefined. */
export function dropMistyped(schema: Schema, value: unknown): unknown {
  if (schema.type === undefined || (value === null && schema.nullable)) return value
  if (schema.type === 'array') {
    const isFit = Array.isArray(value) && value.length <= (schema.maxItems ?? Number.POSITIVE_INFINITY)
    return isFit ? mapMembers(schema, value, dropMistyped) : undefined
  }
  if (schema.type === 'object') return isObject(value) ? mapMembers(schema, value, dropMistyped) : undefined
  if (schema.type === 'string' && schema.enum !== undefined)
    return schema.enum.includes(value as string) ? value : undefined
  const isOfType = schema.type === 'integer' ? Number.isInteger(value) : typeof value === schema.type
  return isOfType ? value : undefined
}

export function withoutShownOnce(schema: Schema, value: unknown): unknown {
  return schema.isShownOnce ? undefined : mapMembers(schema, value, withoutShownOnce)
}

export function showsOnce(schema: Schema): boolean {
  if (schema.isShownOnce || (schema.type === 'array' && showsOnce(schema.items))) return true
  return schema.type === 'object' && Object.values(schema.properties ?? {}).some(showsOnce)
}

/** Copies an array or object, and calls `change` for each member. Any other value is returned unchanged. */
export function mapMembers(
  schema: Schema,
  value: unknown,
  change: (schema: Schema, member: unknown) => unknown,
) {
  if (schema.type === 'array' && Array.isArray(value)) return value.map((item) => change(schema.items, item))
  if (schema.type !== 'object' || !isObject(value)) return value
  const { properties = {}, additionalProperties: others } = schema
  const schemaOf = (name: string) =>
    Object.hasOwn(properties, name) ? properties[name]! : typeof others === 'object' ? others : {}
  return mapValues(value, (member, name) => change(schemaOf(name), member))
}

/**
 * Finds the first name in a path (`user.email`) that `schema` does not have. Returns the level of this name, and the
 * known names at this level.
 */
export function findUnknownName(schema: Schema, path: string) {
  let at = schema
  for (const [level, name] of path.split('.').entries()) {
    // Any JSON value and any map can have members of any name.
    if (at.type === undefined && at.enum === undefined) return undefined
    if (at.type === 'object' && typeof at.additionalProperties === 'object') return undefined
    const { properties = {} } = at.type === 'object' ? at : {}
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (property === undefined) return { level, names: Object.keys(properties) }
    at = memberOf(property)
  }
  return undefined
}

export function memberOf(schema: Schema): Schema {
  return schema.type === 'array' ? memberOf(schema.items) : schema
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, change: (value: T, name: string) => U) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value, name)]))
}
