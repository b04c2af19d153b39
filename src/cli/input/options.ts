/**
 * Flags from schemas: which flag stands for which property of an operation's input, and what its text means.
 * Reading files or standard input for a value is `input`'s business.
 */
import { type Command, Option } from 'commander'
import { CofferError } from '../../errors.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import { readText, type Schema } from '../../framework/schema.js'

/** How the texts given to a flag become a value. */
export type FlagShape = 'text' | 'list' | 'map' | 'json' | 'boolean'

export interface Flag {
  property: string
  /** `--search-index` */
  name: string
  /** The key commander keeps it under. */
  key: string
  shape: FlagShape
  schema: Schema
  isRequired: boolean
  /** Whether it is sent in the body, rather than looked for. */
  isStored: boolean
}

/** The flags of an operation: one for each property that is no word of its command. */
export function listFlags({ input, positionals, endpoint }: RegisteredOperation): Flag[] {
  const { properties = {}, required = [] } = input
  return Object.entries(properties as Record<string, Schema>)
    .filter(([property]) => !positionals.includes(property))
    .map(([property, schema]) => {
      const word = (schema.flag ?? property).replaceAll('_', '-')
      const key = word.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
      return {
        property,
        name: `--${word}`,
        key,
        shape: shapeOf(schema),
        schema,
        isRequired: required.includes(property),
        isStored: endpoint !== undefined && Object.hasOwn(endpoint.body, property),
      }
    })
}

/** The words of the operation's command, as commander spells them, with what each is. */
export function listWords({
  positionals,
  input,
}: RegisteredOperation): [name: string, description: string][] {
  const { properties = {}, required = [] } = input
  return positionals.map((name) => {
    const word = name.replaceAll('_', '-')
    const { description = '' } = properties[name] as Schema
    return [required.includes(name) ? `<${word}>` : `[${word}]`, phrase(description)]
  })
}

/** Whether the operation takes a body, so that `--file` and standard input mean something. */
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
  return schema.type === 'string' && schema.isPath ? '<file>' : undefined
}

/** Adds the operation's flags to its command. Repeating a flag that takes one value is refused. */
export function addFlags(command: Command, definition: RegisteredOperation): void {
  for (const flag of listFlags(definition)) {
    const { name, shape, schema } = flag
    const description = describeFlag(flag)
    if (shape === 'boolean') {
      command.addOption(new Option(name, description))
      command.addOption(new Option(name.replace('--', '--no-'), description))
      continue
    }
    const placeholder = placeholderOf(schema) ?? PLACEHOLDERS[shape]
    const short = schema.short === undefined ? '' : `-${schema.short}, `
    const option = new Option(`${short}${name} ${placeholder}`, description)
    const isRepeatable = shape === 'list' || shape === 'map'
    option.argParser((text: string, before: string[] | undefined) => {
      if (before !== undefined && !isRepeatable) throw new CofferError('usage', `${name} may be given once.`)
      return [...(before ?? []), text]
    })
    command.addOption(option)
  }
}

/** `--flag=true` and `--flag=false` as commander has them, for the flags of `operations` that are yes or no. */
export function spellBooleans(argv: readonly string[], operations: readonly RegisteredOperation[]): string[] {
  return argv.map((word) => {
    const [, name, value] = /^(--[a-z-]+)=(.*)$/s.exec(word) ?? []
    if (name === undefined) return word
    const isBoolean = (flag: Flag) => flag.shape === 'boolean' && flag.name === name
    if (!operations.some((definition) => listFlags(definition).some(isBoolean))) return word
    if (value === 'true') return name
    if (value === 'false') return name.replace('--', '--no-')
    throw new CofferError('usage', `${name} takes true or false, or nothing for true.`)
  })
}

function describeFlag({ schema, shape, isRequired }: Flag): string {
  const notes: string[] = []
  if (isRequired) notes.push('required')
  if (shape === 'list' || shape === 'map') notes.push('repeatable')
  if (shape === 'boolean') notes.push('also =true or =false')
  if ('default' in schema) notes.push(`default ${schema.default}`)
  const text = phrase(schema.description ?? '')
  return notes.length === 0 ? text : `${text} (${notes.join(', ')})`
}

/** A description, which is a sentence in the reference, as one of a list of options. */
function phrase(sentence: string): string {
  const isWord = /^(?:[A-Z]?[a-z]|A )/.test(sentence)
  const text = isWord ? `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}` : sentence
  return text.replace(/\.$/, '')
}

/**
 * The value that `texts`, the contents given to a flag, spell. `parseJson` says where JSON is broken; `isText`: what
 * may be any JSON is known to be text.
 * @throws CofferError `usage` naming the flag.
 */
export function readFlag(
  flag: Flag,
  texts: readonly string[],
  parseJson: ParseJson,
  { isText = false } = {},
): unknown {
  const { name, shape, schema } = flag
  if (shape === 'list') {
    const items = schema.type === 'array' ? schema.items : schema
    return texts.map((text) => (isJson(items) ? readJson(name, text, parseJson) : readText(items, text)))
  }
  if (shape === 'map') return readMap(flag, texts, parseJson)
  const [text = ''] = texts
  if (shape === 'text') return schema.nullable && text === 'null' ? null : readText(schema, text)
  const isPlain = schema.type === undefined && !BEGINS_AS_JSON.test(text) && (isText || !isJsonText(text))
  return isPlain ? text : readJson(name, text, parseJson)
}

/** A list, a text in quotes, or an object; two braces begin an expression. */
export const BEGINS_AS_JSON = /^\s*(?:["[]|\{(?!\{))/

/** Whether it is JSON at all, be it refused or not. */
function isJsonText(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** What no plain text can spell. */
function isJson({ type }: Schema): boolean {
  return type === undefined || type === 'object' || type === 'array'
}

type ParseJson = (text: string, options: { source: string; code: 'usage' }) => unknown

function readJson(name: string, text: string, parseJson: ParseJson): unknown {
  try {
    return parseJson(text, { source: name, code: 'usage' })
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    const hint = BEGINS_AS_JSON.test(text) ? '' : ` Text is given as JSON too: ${name} '"…"'.`
    throw new CofferError('usage', `${error.message}.${hint}`, { cause: error })
  }
}

/** Entries as `key=value`, JSON objects, or both. @throws CofferError `usage` naming the flag. */
export function readMap(
  { name, schema, isStored }: Pick<Flag, 'name' | 'schema' | 'isStored'>,
  texts: readonly string[],
  parseJson: ParseJson,
): Record<string, unknown> {
  const values = schema.type === 'object' ? (schema.additionalProperties as Schema) : {}
  const entries = texts.flatMap((text): [string, unknown][] => {
    if (/^\s*\{/.test(text)) return Object.entries(readJson(name, text, parseJson) as object)
    const at = text.indexOf('=')
    if (/^\s*\[/.test(text)) throw new CofferError('usage', `${name} takes a JSON object, or key=value.`)
    if (at < 1) throw new CofferError('usage', `${name} takes key=value, such as ${name} customer=42.`)
    const [key, value] = [text.slice(0, at), text.slice(at + 1)]
    if (value !== 'null' || values.type !== 'string' || !isStored) return [[key, value]]
    if (values.nullable) return [[key, null]]
    throw new CofferError(
      'usage',
      `${name} ${key}=null would remove an entry, and there is none yet. The text is given as JSON: ${name} '{"${key}":"null"}'.`,
    )
  })
  const keys = new Set(entries.map(([key]) => key))
  if (keys.has('__proto__')) throw new CofferError('usage', `${name}: __proto__ is not allowed as a key.`)
  if (keys.size < entries.length) throw new CofferError('usage', `${name} names a key twice.`)
  return Object.fromEntries(entries)
}
