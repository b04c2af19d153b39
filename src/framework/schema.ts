/**
 * The subset of JSON Schema that operations declare their input and output in, the TypeScript type of each schema, and
 * how a value of it is read from text (a flag, a query parameter). Small on purpose: every reader must know all of it.
 */
import { isObject } from '../domain/json/json.js'

/** What every schema may say besides its type; none of it changes what is valid but `nullable`. */
interface Annotations {
  description?: string
  /**
   * Whether null is a value of its own here (true) or refused (false). Where nothing is said, null for something
   * optional means that it was left out.
   */
  nullable?: boolean
  /** Never required as an argument, asked for with a masked prompt, kept out of every log. */
  sensitive?: true
  /** The flag's name where it is not the property's: the singular of an array. */
  flag?: string
  /** Where another property has one of these values, what is given to the flag is text, JSON or not. */
  textWhere?: Readonly<Record<string, readonly string[]>>
  /** Of an output: the name under which the OpenAPI document describes it once. */
  component?: string
  /** Of an output: what of it a table on a terminal shows, if not all; dots reach into objects. */
  columns?: readonly string[]
  examples?: readonly unknown[]
  /** A second name of the flag, of one letter. */
  short?: string
}

export interface StringSchema extends Annotations {
  type: 'string'
  enum?: readonly string[]
  minLength?: number
  maxLength?: number
  format?: 'uuid' | 'date-time'
  default?: string
  /** The path of a file, which the command line makes absolute. */
  isPath?: true
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
  /** Of an input, always there; an output is not bounded. */
  maxItems?: number
}

/** `additionalProperties`: false is closed, true ignores the rest, a schema makes it a map. It is never left out. */
export interface ObjectSchema extends Annotations {
  type: 'object'
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  /** One of these has to be given; a person who gave none is asked for the first. Whoever runs the operation checks. */
  needsOneOf?: readonly string[]
  additionalProperties: boolean | Schema
  minProperties?: number
  maxProperties?: number
}

/** An input: these properties, of which some are required; what else is sent is ignored. */
export function inputSchema<
  const P extends Readonly<Record<string, Schema>>,
  const R extends readonly (keyof P & string)[],
>(required: R, properties: P) {
  return { type: 'object', properties, required, additionalProperties: true } as const
}

/** The same, but what else is sent is refused. */
export function closedInput<
  const P extends Readonly<Record<string, Schema>>,
  const R extends readonly (keyof P & string)[],
>(required: R, properties: P) {
  return { type: 'object', properties, required, additionalProperties: false } as const
}

/** A filter of a list: what is kept may have any of the values. An empty one would be a filter that nobody meant. */
export function filterBy(description: string) {
  return { type: 'array', items: { type: 'string', minLength: 1 }, maxItems: 100, description } as const
}

/** Any JSON, or one of a few texts. */
export interface AnySchema extends Annotations {
  type?: never
  enum?: readonly string[]
}

export type Schema = StringSchema | NumberSchema | BooleanSchema | ArraySchema | ObjectSchema | AnySchema

type RequiredNames<S> = S extends { required: readonly (infer R)[] } ? R : never
type Flat<T> = { [K in keyof T]: T[K] }
type Properties<S, P> = Flat<
  { [K in keyof P as K extends RequiredNames<S> ? K : never]: Infer<P[K]> } & {
    [K in keyof P as K extends RequiredNames<S> ? never : K]?: Infer<P[K]>
  }
>
type Bare<S> = S extends { enum: readonly (infer E)[] }
  ? E
  : S extends { type: 'string' }
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

/** The type of what a schema describes. */
export type Infer<S> = S extends { nullable: true } ? Bare<S> | null : Bare<S>

/** The type of what an operation with this output answers with. */
export type Answer<O> = O extends Schema ? Infer<O> : undefined

export type JsonSchema = Readonly<Record<string, unknown>>

/** Keywords that JSON Schema does not have. */
const ANNOTATIONS = new Set([
  'nullable',
  'sensitive',
  'flag',
  'short',
  'isPath',
  'textWhere',
  'needsOneOf',
  'columns',
])

/**
 * What `schema` is to a JSON Schema (2020-12) validator: our own annotations left out, `nullable` spelled as a type, and a
 * reference to the OpenAPI document in the place of a component.
 */
export function toJsonSchema(schema: Schema): JsonSchema {
  if (schema.component !== undefined) return { $ref: `#/components/schemas/${schema.component}` }
  const entries = Object.entries(schema).filter(([name]) => !ANNOTATIONS.has(name))
  const out: Record<string, unknown> = Object.fromEntries(entries)
  if (schema.nullable && schema.type !== undefined) out.type = [schema.type, 'null']
  if (schema.type === 'array') out.items = toJsonSchema(schema.items)
  if (schema.type === 'object') {
    const { properties, additionalProperties } = schema
    if (properties !== undefined) out.properties = mapValues(properties, toJsonSchema)
    out.additionalProperties =
      typeof additionalProperties === 'boolean' ? additionalProperties : toJsonSchema(additionalProperties)
  }
  return out
}

/**
 * The value that `text` spells for `schema`. Text that spells none is returned as it is, so that validation, which
 * knows how to say what was expected, refuses it.
 */
export function readText(schema: Schema, text: string): unknown {
  if (schema.type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (schema.type !== 'integer' && schema.type !== 'number') return text
  // Without a maximum any number of digits spells one; the largest there is follows all that is counted.
  if (schema.maximum === undefined && /^\d{16,}$/.test(text)) return Math.min(Number(text), Number.MAX_VALUE)
  const isNumber = /^-?\d{1,15}(\.\d{1,15})?$/.test(text)
  return isNumber ? Number(text) : text
}

/** `value` with defaults filled in, and without null for what is optional, where null has no meaning; at every depth. */
export function completeValue(schema: Schema, value: unknown): unknown {
  if (schema.type === 'array' && schema.items.type === 'object' && Array.isArray(value))
    return value.map((item) => completeValue(schema.items, item))
  if (schema.type !== 'object' || !isObject(value)) return value
  const { properties = {}, required = [] } = schema
  const complete = { ...value }
  for (const name in properties) {
    const property = properties[name]!
    const isNullAbsent =
      complete[name] === null && property.nullable === undefined && !required.includes(name)
    if (!isNullAbsent && complete[name] !== undefined) {
      complete[name] = completeValue(property, complete[name])
      continue
    }
    if (name in complete) delete complete[name]
    if ('default' in property) complete[name] = property.default
  }
  return complete
}

/** `value` without each part that is not of the type that its schema says; in an array undefined stands for it. */
export function keepFitting(schema: Schema, value: unknown): unknown {
  if (schema.type === undefined || (value === null && schema.nullable)) return value
  if (schema.type === 'array') {
    const isFit = Array.isArray(value) && value.length <= (schema.maxItems ?? Number.POSITIVE_INFINITY)
    return isFit ? value.map((item) => keepFitting(schema.items, item)) : undefined
  }
  if (schema.type === 'object') {
    if (!isObject(value)) return undefined
    const { properties = {}, additionalProperties: others } = schema
    const keep = (name: string, item: unknown) => {
      if (Object.hasOwn(properties, name)) return keepFitting(properties[name]!, item)
      return typeof others === 'object' ? keepFitting(others, item) : item
    }
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, keep(name, item)]))
  }
  if (schema.type === 'string' && schema.enum !== undefined)
    return schema.enum.includes(value as string) ? value : undefined
  const isOfType = schema.type === 'integer' ? Number.isInteger(value) : typeof value === schema.type
  return isOfType ? value : undefined
}

/** The first name in a path of names (`user.email`) that values of `schema` cannot have. Arrays are passed through. */
export function findUnknownName(
  schema: Schema,
  path: string,
): { level: number; names: string[] } | undefined {
  let at = schema
  for (const [level, name] of path.split('.').entries()) {
    // Below what may be any JSON, or has names of its own, every name may be.
    if (at.type === undefined && at.enum === undefined) return undefined
    if (at.type === 'object' && typeof at.additionalProperties === 'object') return undefined
    const { properties = {} } = at.type === 'object' ? at : {}
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (property === undefined) return { level, names: Object.keys(properties) }
    at = memberOf(property)
  }
  return undefined
}

/** What an array has members of, at any depth; of anything else, that itself. */
export function memberOf(schema: Schema): Schema {
  return schema.type === 'array' ? memberOf(schema.items) : schema
}

function mapValues<T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]))
}
