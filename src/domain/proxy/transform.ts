import type { PropertyErrors } from '../../errors.js'
import { findTexts } from '../json/find-texts.js'
import { canonicalJson, isObject } from '../json/json.js'
import { omitUndefined } from '../omit-undefined.js'
import { addError } from '../property-errors.js'
import { MAX_CODE_BYTES } from '../reactor/formula.js'
import { type RuntimeOptions, readRuntime } from '../reactor/runtime.js'
import { maySet } from './code-answer.js'
import { readLocation } from './location.js'

/** `type` and `matcher` keep the upper and lower case that the caller wrote. */
export type ProxyTransform =
  | { type: string; code: string; options?: { runtime: RuntimeOptions } }
  | { type: string; matcher: string; expression?: string; replacement: string }
  | { type: string; options: { identifier?: string; token: Given } }
  | { type: string; options: { value: string; location?: string } }

const MAX_TRANSFORMS = 10
const MAX_EXPRESSION_CHARACTERS = 1000
const MAX_IDENTIFIER_CHARACTERS = 100
/** Matches card numbers in records of fixed width. */
const CHASE_MATCHER = 'chase_stratus_pan'
const HEADER_RULE = 'must be the name of a header that is passed on'
export const DIRECTIONS = ['request', 'response'] as const
export type Direction = (typeof DIRECTIONS)[number]

type Given = Readonly<Record<string, unknown>>

const isJsonLocation = (text: string) => readLocation(text) !== undefined

/**
 * Accepts the plural property (`request_transforms`), or the singular property (`request_transform`) with an object or
 * an array of one object. Both properties are accepted if they are equal, because the API returns both if a proxy has
 * one transform.
 */
export function readTransforms(given: Given, direction: Direction, errors: PropertyErrors = {}) {
  const one = `${direction}_transform`
  const many = `${one}s`
  const [single, list] = [given[one] || undefined, given[many] || undefined]
  const isSingle = single !== undefined && list === undefined
  const pathOf = (index: number) => (isSingle ? one : `${many}[${index}]`)
  const isEqual = canonicalJson([single].flat()) === canonicalJson(list ?? [])
  if (single !== undefined && list !== undefined && !isEqual)
    addError(errors, one, `cannot be given together with ${many} that differ from it`)
  const items: unknown = isSingle ? [single].flat() : (list ?? [])
  if (!Array.isArray(items)) addError(errors, many, 'must be an array')
  else if (isSingle && items.length !== 1) addError(errors, one, 'must be one transform')
  else if (items.length > MAX_TRANSFORMS) addError(errors, many, `must have at most ${MAX_TRANSFORMS} items`)
  else {
    const identifiers = new Set<string>()
    return items.flatMap((each, index) => {
      const read = readTransform(each, direction, errors, pathOf(index))
      const { identifier } = (read[0] as { options?: { identifier?: string } } | undefined)?.options ?? {}
      if (identifier !== undefined && identifiers.has(identifier))
        addError(errors, `${pathOf(index)}.options.identifier`, 'must be unique among the transforms')
      if (identifier !== undefined) identifiers.add(identifier)
      return read
    })
  }
  return []
}

export function findTemplates(given: Given, direction: Direction): Map<string, string> {
  const found = new Map<string, string>()
  for (const [index, transform] of readTransforms(given, direction).entries()) {
    const many = `${direction}_transforms`
    const path = given[many] ? `${many}[${index}]` : `${direction}_transform`
    findTexts(templateOf(transform), `${path}.options`, found)
  }
  return found
}

export function templateOf(transform: ProxyTransform): { token: Given } | { value: string } | undefined {
  const { options = {} } = transform as { options?: { token?: Given; value?: string } }
  if (options.value !== undefined) return { value: options.value }
  if (options.token === undefined) return undefined
  const { data, metadata, encrypted } = options.token
  return { token: omitUndefined({ data, metadata, encrypted }) }
}

export function kindOf({ type }: ProxyTransform): string {
  return type.toLowerCase()
}

function readTransform(given: unknown, direction: Direction, errors: PropertyErrors, path: string) {
  let isWrong = false
  const add: Add = (name, message) => {
    isWrong = true
    addError(errors, `${path}${name}`, message)
  }
  if (!isObject(given)) add('', 'must be an object')
  const { type = 'code', ...members } = withoutEmpty(isObject(given) ? given : {})
  const kind = typeof type === 'string' ? type.toLowerCase() : undefined
  let read: object | undefined
  const kinds: Record<string, () => object> = {
    code: () => readCode(members, add),
    ...(direction === 'response' && { mask: () => readMask(members, add) }),
    tokenize: () => readTokenize(members, add),
    append_json: () => readAppend(members, add, isJsonLocation, 'must be a JSONPath of names and indexes'),
    append_header: () => readAppend(members, add, (text) => maySet(text, direction), HEADER_RULE),
    append_text: () => readAppend(members, add),
  }
  if (kind !== undefined && Object.hasOwn(kinds, kind)) read = kinds[kind]!()
  else add('.type', `must be one of ${Object.keys(kinds).join(', ')}`)
  for (const name of read === undefined ? [] : Object.keys(members))
    if (!Object.hasOwn(read!, name)) add(`.${name}`, `is not for transforms of type ${kind}`)
  return isWrong ? [] : [{ type, ...omitUndefined(read!) } as ProxyTransform]
}

type Add = (name: string, message: string) => void

function readCode({ code, options }: Given, add: Add) {
  const bytes = typeof code === 'string' ? new TextEncoder().encode(code).length : 0
  if (bytes === 0) add('.code', 'is required, as text')
  if (bytes > MAX_CODE_BYTES) add('.code', `must have at most ${MAX_CODE_BYTES} bytes`)
  if (options === undefined) return { code }
  const { runtime } = readOptions(options, add, ['runtime'])
  return { code, options: runtime === undefined ? undefined : { runtime: readRuntime(runtime, add) } }
}

function readTokenize({ options }: Given, add: Add) {
  const { identifier, token } = readOptions(options, add, ['identifier', 'token'])
  const isShort = typeof identifier === 'string' && identifier.length <= MAX_IDENTIFIER_CHARACTERS
  if (identifier !== undefined && !isShort)
    add('.options.identifier', `must be text of at most ${MAX_IDENTIFIER_CHARACTERS} characters`)
  if (!isObject(token)) add('.options.token', 'is required, as an object')
  const given = isObject(token) ? omitNulls(token) : undefined
  if (given !== undefined && given.type === undefined) add('.options.token.type', 'is required')
  if (given !== undefined && given.data === undefined && given.encrypted === undefined)
    add('.options.token.data', 'is required, unless encrypted is given')
  if (given?.data !== undefined && given.encrypted !== undefined)
    add(
      '.options.token.encrypted',
      'must not be given together with data, because encrypted contains the data',
    )
  return { options: omitUndefined({ identifier, token }) }
}

/** If `isPlace` is given, the option `location` is required, and `isPlace` checks the location. */
function readAppend(
  { options }: Given,
  add: Add,
  isPlace?: (location: string) => boolean,
  expected = 'must be text',
) {
  const { value, location } = readOptions(options, add, ['value', 'location'])
  if (typeof value !== 'string') add('.options.value', 'is required, as text')
  const isFit = typeof location === 'string' ? isPlace?.(location) !== false : isPlace === undefined
  if (!isFit || (location !== undefined && typeof location !== 'string')) add('.options.location', expected)
  return { options: omitUndefined({ value, location }) }
}

function readOptions(options: unknown, add: Add, names: readonly string[]): Record<string, unknown> {
  if (!isObject(options)) add('.options', 'must be an object')
  const given = withoutEmpty(isObject(options) ? options : {})
  for (const name of Object.keys(given))
    if (!names.includes(name)) add(`.options.${name}`, 'is not for transforms of this type')
  return given
}

function readMask({ matcher, expression, replacement }: Given, add: Add) {
  const expected = `must be a regular expression with a group, of at most ${MAX_EXPRESSION_CHARACTERS} characters`
  const kind = typeof matcher === 'string' ? matcher.toLowerCase() : undefined
  const isOne = typeof replacement === 'string' && [...replacement].length === 1
  if (kind !== 'regex' && kind !== CHASE_MATCHER) add('.matcher', `must be regex or ${CHASE_MATCHER}`)
  if (kind === 'regex' && !isExpression(expression)) add('.expression', expected)
  if (kind === CHASE_MATCHER && expression !== undefined) add('.expression', `is not for ${CHASE_MATCHER}`)
  if (!isOne) add('.replacement', 'must be one character')
  return { matcher, replacement, expression }
}

function omitNulls(given: Given): Given {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))
}

/** Clients send empty members instead of absent values. */
function withoutEmpty(given: Given): Record<string, unknown> {
  const isEmpty = (value: unknown): boolean =>
    (value ?? '') === '' || (isObject(value) && Object.keys(value).length === 0)
  return Object.fromEntries(Object.entries(given).filter(([, value]) => !isEmpty(value)))
}

/** Only compiles the expression, because applying the expression could take unlimited time. */
function isExpression(text: unknown): boolean {
  if (typeof text !== 'string' || text.length > MAX_EXPRESSION_CHARACTERS) return false
  try {
    // Throws if the text is not a regular expression.
    new RegExp(text)
    // The empty alternative before `|` matches first, so the expression is not applied, but its groups are counted.
    return new RegExp(`|${text}`).exec('')!.length > 1
  } catch {
    return false
  }
}
