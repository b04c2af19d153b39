/**
 * Derives the flags of a command from the input schema of its operation, and parses their values. A flag may have the command
 * perform another operation: a form of the command.
 */
import { type Command, Option } from 'commander'
import { parseJson, tryJson } from '../../domain/json/json.js'
import { CofferError, usage } from '../../errors.js'
import type { RegisteredOperation, Registry } from '../../framework/registry.js'
import { readText, type Schema } from '../../framework/schema.js'
import type { Options } from '../task.js'

export type FlagShape = 'text' | 'list' | 'map' | 'json' | 'boolean'

export interface Flag {
  property: string
  /** `--search-index` */
  name: string
  /** Commander's name of the option. */
  key: string
  shape: FlagShape
  schema: Schema
  isRequired: boolean
  /** Whether it is part of the body, in which null removes an entry. */
  isStored: boolean
  /** Whether a value that may be any JSON is text. */
  isText?: boolean
}

/** One flag for each property that is not a positional argument. */
export function listFlags({ input, positionals, endpoint }: RegisteredOperation): Flag[] {
  const isInBody = (property: string) => endpoint !== undefined && !endpoint.parameters.includes(property)
  const { properties = {}, required = [] } = input
  return Object.entries(properties as Record<string, Schema>)
    .filter(([property]) => !positionals.includes(property) || isInBody(property))
    .map(([property, schema]) => ({
      ...toFlag(property, schema),
      isRequired: required.includes(property),
      isStored: endpoint !== undefined && Object.hasOwn(endpoint.body, property),
    }))
}

/** The flag of a property, or of anything else that is asked for. */
export function toFlag(property: string, schema: Schema): Flag {
  const word = (schema.flag ?? property).replaceAll('_', '-')
  return {
    property,
    name: `--${word}`,
    key: keyOf(word),
    shape: shapeOf(schema),
    schema,
    isRequired: true,
    isStored: false,
  }
}

/** Commander's name of an option: `searchIndex` of `search-index`. */
export function keyOf(word: string): string {
  return word.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** Whether the value is text, which may depend on other properties. */
export function isTextOf({ schema }: Flag, given: Options): boolean {
  const conditions = Object.entries(schema.textWhere ?? {})
  return conditions.some(([name, values]) => values.includes(given[name] as string))
}

/** The positional arguments of the operation's command, in commander's syntax. */
export function listArgs(definition: RegisteredOperation): [name: string, description: string][] {
  const { positionals, input } = definition
  const { properties = {}, required = [] } = input
  return positionals.map((name, at) => {
    const isMany = takesMany(definition) && at === positionals.length - 1
    const word = `${name.replaceAll('_', '-')}${isMany ? '...' : ''}`
    const { description: text = '' } = properties[name] as Schema
    const description = isMany
      ? `${text.replace(/\.$/, '')}; several one after another, or - for lines of standard input`
      : text
    return [required.includes(name) ? `<${word}>` : `[${word}]`, phrase(description)]
  })
}

/** Whether the command takes several values of its last argument, which is the id in a path. */
export function takesMany({ endpoint, positionals }: RegisteredOperation): boolean {
  return endpoint !== undefined && positionals.length > 0
}

export function takesBody({ endpoint }: RegisteredOperation): boolean {
  return endpoint?.takesBody === true
}

function shapeOf(schema: Schema): FlagShape {
  if (schema.type === undefined) return 'json'
  if (schema.type === 'array') return 'list'
  if (schema.type === 'boolean') return 'boolean'
  if (schema.type !== 'object') return 'text'
  return schema.properties === undefined ? 'map' : 'json'
}

const PLACEHOLDERS: Record<FlagShape, string> = {
  text: '<text>',
  list: '<text>',
  map: '<key=value>',
  json: '<json>',
  boolean: '',
}

function placeholderOf(schema: Schema): string | undefined {
  if (schema.type === 'integer') return '<number>'
  if (schema.refersTo !== undefined) return '<name>'
  return schema.type === 'string' && schema.isPath ? '<file>' : undefined
}

/** Adds the operation's flags to its command. A repeated flag is refused unless it takes several values. */
export function addFlags(command: Command, definition: RegisteredOperation): void {
  for (const flag of listFlags(definition)) {
    const { name, shape, schema } = flag
    // A form has flags of the command's own operation too.
    if (command.options.some(({ long }) => long === name)) continue
    const description = describeFlag(flag)
    if (shape === 'boolean') {
      command.addOption(new Option(name, description))
      command.addOption(new Option(name.replace('--', '--no-'), description))
      continue
    }
    const isForm = name === `--${definition.form?.flag}`
    const placeholder = isForm ? '[text]' : (placeholderOf(schema) ?? PLACEHOLDERS[shape])
    const short = schema.short === undefined ? '' : `-${schema.short}, `
    const option = new Option(`${short}${name} ${placeholder}`, description)
    const isRepeatable = shape === 'list' || shape === 'map'
    option.argParser((text: string, before: string[] | undefined) => {
      if (before !== undefined && !isRepeatable) throw usage(`${name} may be given only once.`)
      return [...(before ?? []), text]
    })
    command.addOption(option)
  }
}

/** The operations that the command of this one performs besides. */
export function listVariants(registry: Registry, { name }: RegisteredOperation): RegisteredOperation[] {
  return registry.operations.filter(({ form }) => form?.command === name)
}

/**
 * The operation that a command performs with these options, and the options for it: the flag of a form may be without a
 * value.
 * @throws CofferError `usage` for a flag of another one
 */
export function chooseVariant(
  definition: RegisteredOperation,
  forms: readonly RegisteredOperation[],
  options: Options,
): { chosen: RegisteredOperation; options: Options } {
  const chosen = forms.find(({ form }) => options[form!.flag] !== undefined) ?? definition
  const known = new Set(listFlags(chosen).map(({ name }) => name))
  for (const each of [definition, ...forms])
    for (const { name, key } of listFlags(each))
      if (options[key] !== undefined && !known.has(name)) {
        const problem = chosen.form ? `does not go with --${chosen.form.flag}` : `needs --${each.form!.flag}`
        throw usage(`${name} ${problem}.`)
      }
  const given = Object.entries(options).filter(([key, value]) => key !== chosen.form?.flag || value !== true)
  return { chosen, options: Object.fromEntries(given) }
}

/** Replaces `--flag=true` and `--flag=false` by `--flag` and `--no-flag` for boolean flags. */
export function splitBooleans(argv: readonly string[], operations: readonly RegisteredOperation[]): string[] {
  return argv.map((word) => {
    const [, name, value] = /^(--[a-z-]+)=(.*)$/s.exec(word) ?? []
    if (name === undefined) return word
    const isBoolean = (flag: Flag) => flag.shape === 'boolean' && flag.name === name
    if (!operations.some((definition) => listFlags(definition).some(isBoolean))) return word
    if (value === 'true') return name
    if (value === 'false') return name.replace('--', '--no-')
    throw usage(`${name} takes true or false; without a value it is true.`)
  })
}

function describeFlag({ schema, shape, isRequired }: Flag): string {
  const notes: string[] = []
  if (isRequired) notes.push('required')
  if (shape === 'list' || shape === 'map') notes.push('repeatable')
  if (shape === 'boolean') notes.push('also =true or =false')
  if (schema.duration !== undefined) notes.push(`also a duration: 72h ${schema.duration}`)
  if ('default' in schema) notes.push(`default ${schema.default}`)
  const text = phrase(schema.description ?? '')
  return notes.length === 0 ? text : `${text} (${notes.join(', ')})`
}

/** The sentence of the API reference as an entry in a list of options. */
function phrase(sentence: string): string {
  const isWord = /^(?:[A-Z]?[a-z]|A )/.test(sentence)
  const text = isWord ? `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}` : sentence
  return text.replace(/\.$/, '')
}

/** Parses the values given to a flag. @throws CofferError `usage` naming the flag */
export function readFlag(flag: Flag, texts: readonly string[]): unknown {
  const { name, shape, schema, isText = false } = flag
  if (shape === 'list') {
    const items = schema.type === 'array' ? schema.items : schema
    return texts.map((text) => (isJson(items) ? readJson(name, text, items) : readText(items, text)))
  }
  if (shape === 'map') return readMap(flag, texts)
  const [text = '', ...others] = texts
  // The command of a variant may take the flag several times.
  if (others.length > 0) throw usage(`${name} may be given only once.`)
  if (schema.refersTo !== undefined && shape === 'json' && !BEGINS_AS_JSON.test(text)) return { id: text }
  if (shape === 'text') return schema.nullable && text === 'null' ? null : readText(schema, text)
  // Refuses JSON that only `JSON.parse` takes, instead of taking it for text.
  const isPlain = !BEGINS_AS_JSON.test(text) && (isText || tryJson(text) === undefined)
  return schema.type === undefined && isPlain ? text : readJson(name, text, schema)
}

/** The start of an array, a string or an object; two braces start an expression. */
export const BEGINS_AS_JSON = /^\s*(?:["[]|\{(?!\{))/

function isJson({ type }: Schema): boolean {
  return type === undefined || type === 'object' || type === 'array'
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

/** Parses `key=value` entries and JSON objects. @throws CofferError `usage` naming the flag */
export function readMap(
  { name, schema, isStored }: Pick<Flag, 'name' | 'schema' | 'isStored'>,
  texts: readonly string[],
): Record<string, unknown> {
  const values = schema.type === 'object' ? (schema.additionalProperties as Schema) : {}
  const entries = texts.flatMap((text): [string, unknown][] => {
    if (/^\s*\{/.test(text)) return Object.entries(readJson(name, text) as object)
    const at = text.indexOf('=')
    if (/^\s*\[/.test(text)) throw usage(`${name} takes a JSON object, or key=value.`)
    if (at < 1) throw usage(`${name} takes key=value, such as ${name} customer=42.`)
    const [key, value] = [text.slice(0, at), text.slice(at + 1)]
    if (value !== 'null' || values.type !== 'string' || !isStored) return [[key, value]]
    if (values.nullable) return [[key, null]]
    throw usage(
      `${name} ${key}=null removes an entry, but there is none. For the text null use JSON: ${name} '{"${key}":"null"}'.`,
    )
  })
  const keys = new Set(entries.map(([key]) => key))
  if (keys.has('__proto__')) throw usage(`${name}: __proto__ is not allowed as a key.`)
  if (keys.size < entries.length) throw usage(`${name} has a key twice.`)
  return Object.fromEntries(entries)
}
