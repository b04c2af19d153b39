/**
 * Reads and writes the part of YAML 1.2 that is JSON. Commands load this file only when they read or write YAML.
 * Messages contain the line and the column, but never the text.
 */
import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isScalar,
  LineCounter,
  Parser,
  stringify,
  visit,
} from 'yaml'
import { exactNumber, findFault, MAX_JSON_DEPTH, MAX_JSON_VALUES } from '../../domain/json/json.js'
import { validationError } from '../../errors.js'
import { display, escapeInQuotes } from '../output/display.js'

/** The limit for the number of values and property names, with aliases replaced. */
const MAX_VALUES = 10 * MAX_JSON_VALUES
const MAX_ALIASES = 100
/** The limit for the characters in all texts together, with aliases replaced. */
const MAX_CHARACTERS = 16 * 1024 * 1024
/** A container in the library's syntax tree can have two levels for one level of the value. */
const MAX_TOKEN_DEPTH = 2 * MAX_JSON_DEPTH

type Composed = Document.Parsed
type Refuse = (offset: number, why: string) => never

/** `source`: the name of the text in messages. @throws CofferError `validation` */
export function parseYaml(text: string, source: string): unknown {
  const lines = new LineCounter()
  const refuse: Refuse = (offset, why) => {
    const { line, col } = lines.linePos(offset)
    throw validationError(`${source} is refused at line ${line}, column ${col}: ${why}`)
  }
  const tokens = [...new Parser(lines.addNewLine).parse(text)]
  // The composer is recursive, so the depth is checked before it runs.
  for (const token of tokens) refuseDepth(token, refuse)
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    strict: true,
    stringKeys: true,
    uniqueKeys: true,
    merge: false,
    logLevel: 'silent',
    prettyErrors: false,
  })
  const [document, ...others] = composer.compose(tokens, true, text.length)
  if (document === undefined) return null
  if (others.length > 0) refuse(others[0]!.range[0], 'it has more than one document; keep one')
  const [fault] = [...document.errors, ...document.warnings]
  if (fault !== undefined) refuse(fault.pos[0], REASONS[fault.code] ?? `it is not valid YAML (${fault.code})`)
  refuseContent(document, refuse)
  const value = expandAliases(document, refuse)
  // Everything that is refused in JSON is refused in YAML too.
  const rest = findFault(JSON.stringify(value), MAX_VALUES)
  if (rest !== undefined) throw validationError(`${source} is refused: ${rest.message}`)
  return value
}

/** Returns block YAML that {@link parseYaml} reads as an equal value. */
export function formatYaml(value: unknown): string {
  const options = { version: '1.2', schema: 'core', lineWidth: 0, aliasDuplicateObjects: false } as const
  const text = stringify(value, options)
  if (display(text) === text.replaceAll('\n', '↵')) return text
  // Escapes characters that a terminal might obey. YAML has escapes in double quotes only.
  const quoted = {
    defaultStringType: 'QUOTE_DOUBLE',
    defaultKeyType: 'QUOTE_DOUBLE',
    blockQuote: false,
  } as const
  return escapeInQuotes(stringify(value, { ...options, ...quoted }))
}

const REASONS: Record<string, string> = {
  TAG_RESOLVE_FAILED: 'tags are not supported; write the value as text, number, list or map',
  DUPLICATE_KEY: 'this property occurs twice in one map; keep one of them',
  NON_STRING_KEY: 'a property name must be text; put it in quotes',
  BAD_INDENT: 'the indentation is wrong',
  TAB_AS_INDENT: 'a tab cannot be used for indentation; use spaces',
  MISSING_CHAR: 'a character such as a colon, a quote or a bracket is missing',
  BAD_ALIAS: 'this alias has no anchor before it',
}

/** Does not recurse, because a text of 1 MiB can nest a million levels. */
function refuseDepth(token: CST.Token, refuse: Refuse): void {
  const waiting: { token: CST.Token; depth: number }[] = [{ token, depth: 0 }]
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const { token, depth } = at
    if (depth > MAX_TOKEN_DEPTH) refuse(token.offset, `nested more than ${MAX_JSON_DEPTH} levels deep`)
    if (token.type === 'document' && token.value) waiting.push({ token: token.value, depth })
    if (!('items' in token)) continue
    for (const { key, value } of token.items) {
      if (key) waiting.push({ token: key, depth: depth + 1 })
      if (value) waiting.push({ token: value, depth: depth + 1 })
    }
  }
}

const CORE_TAG = /^tag:yaml\.org,2002:(str|int|float|bool|null|map|seq)$/
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

/** Refuses tags, aliases without an anchor, and numbers that JavaScript cannot represent exactly. */
function refuseContent(document: Composed, refuse: Refuse): void {
  visit(document, {
    Node: (_, node) => {
      const [offset = 0] = ('range' in node && node.range) || []
      if (isAlias(node)) {
        if (node.resolve(document) === undefined) refuse(offset, REASONS.BAD_ALIAS!)
        return
      }
      if (node.tag !== undefined && !CORE_TAG.test(node.tag)) refuse(offset, REASONS.TAG_RESOLVE_FAILED!)
      if (!isScalar(node) || typeof node.value !== 'number') return
      const { source = '' } = node
      if (!JSON_NUMBER.test(source) || exactNumber(source) === undefined)
        refuse(offset, 'this number would be changed; put it in quotes if it is text')
    },
  })
}

function expandAliases(document: Composed, refuse: Refuse): unknown {
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error
    return refuse(0, `aliases repeat more than ${MAX_ALIASES} values; write fewer aliases`)
  }
  refuseSize(value, refuse)
  return value
}

/** Counts the value of an alias at each use, because JSON repeats this value at each use. */
function refuseSize(value: unknown, refuse: Refuse): void {
  let values = 0
  let characters = 0
  const waiting: { value: unknown; depth: number }[] = [{ value, depth: 0 }]
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const { value, depth } = at
    if (++values > MAX_VALUES) refuse(0, `it has more than ${MAX_VALUES} values and property names`)
    if (depth > MAX_JSON_DEPTH) refuse(0, `nested more than ${MAX_JSON_DEPTH} levels deep`)
    if (typeof value === 'string') characters += value.length
    if (characters > MAX_CHARACTERS) refuse(0, `its texts have more than ${MAX_CHARACTERS} characters`)
    if (typeof value !== 'object' || value === null) continue
    for (const [name, member] of Object.entries(value)) {
      if (!Array.isArray(value)) waiting.push({ value: name, depth: depth + 1 })
      waiting.push({ value: member, depth: depth + 1 })
    }
  }
}
