import type { PropertyErrors } from '../../errors.js'
import { isObject } from '../json/json.js'
import { omitUndefined } from '../omit-undefined.js'
import { addError, refuseErrors } from '../property-errors.js'
import { MAX_CODE_BYTES } from '../reactor/formula.js'
import { checkConfiguration, type RuntimeOptions, readRuntime } from '../reactor/reactor.js'

/** Code changes a request or an answer; a mask hides parts of an answer. `type` and `matcher` in the case they came in. */
export type ProxyTransform =
  | { type: string; code: string; options?: { runtime: RuntimeOptions } }
  | { type: string; matcher: string; expression?: string; replacement: string }

const MOST_URL_CHARACTERS = 2000
const MOST_TRANSFORMS = 10
const MOST_EXPRESSION_CHARACTERS = 1000
/** Hides the card numbers in answers of fixed-width records. */
const CHASE_MATCHER = 'chase_stratus_pan'
/** Properties of other services that this one lacks; refused, because they would change what the proxy does. */
const UNSUPPORTED = ['request_reactor_id', 'response_reactor_id']
export const DIRECTIONS = ['request', 'response'] as const
type Direction = (typeof DIRECTIONS)[number]

type Given = Readonly<Record<string, unknown>>

/** Checks what the schema cannot say; values may have the wrong type. @throws CofferError `validation` */
export function checkProxy(given: Given): void {
  const errors: PropertyErrors = {}
  for (const name of UNSUPPORTED)
    if ((given[name] ?? '') !== '') addError(errors, name, 'is not supported here: use transforms')
  const { destination_url, configuration } = given
  if (typeof destination_url === 'string' && readDestination(destination_url) === undefined)
    addError(errors, 'destination_url', DESTINATION_RULE)
  checkConfiguration(configuration, errors)
  for (const direction of DIRECTIONS) readTransforms(given, direction, errors)
  refuseErrors(errors)
}

export const DESTINATION_RULE = `must be an http or https URL without user, query and fragment, of at most ${MOST_URL_CHARACTERS} characters`

export function readDestination(text: string): URL | undefined {
  if (text.length > MOST_URL_CHARACTERS || !/^https?:\/\/[\x21-\x7e]+$/i.test(text) || /[?#\\]/.test(text))
    return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url === undefined || url.username !== '' || url.password !== '' ? undefined : url
}

/** The transforms of one direction: the plural form, or the singular one, an object or an array of one. */
export function readTransforms(given: Given, direction: Direction, errors: PropertyErrors = {}) {
  const one = `${direction}_transform`
  const many = `${one}s`
  const [single, list] = [given[one] || undefined, given[many] || undefined]
  const isSingle = single !== undefined
  if (isSingle && list !== undefined) addError(errors, one, `cannot be given beside ${many}`)
  const items: unknown = isSingle ? [single].flat() : (list ?? [])
  if (!Array.isArray(items)) addError(errors, many, 'must be an array')
  else if (isSingle && items.length !== 1) addError(errors, one, 'must be one transform')
  else if (items.length > MOST_TRANSFORMS)
    addError(errors, many, `must have at most ${MOST_TRANSFORMS} items`)
  else
    return items.flatMap((each, index) =>
      readTransform(each, direction, errors, isSingle ? one : `${many}[${index}]`),
    )
  return []
}

/** The transform without empty members; none if it is wrong. */
function readTransform(
  given: unknown,
  direction: Direction,
  errors: PropertyErrors,
  path: string,
): ProxyTransform[] {
  let isWrong = false
  const add: Add = (name, message) => {
    isWrong = true
    addError(errors, `${path}${name}`, message)
  }
  if (!isObject(given)) add('', 'must be an object')
  const { type = 'code', ...members } = withoutEmpty(isObject(given) ? given : {})
  const kind = typeof type === 'string' ? type.toLowerCase() : undefined
  let read: object | undefined
  if (kind === 'code') read = readCode(members, add)
  else if (kind === 'mask' && direction === 'response') read = readMask(members, add)
  else add('.type', `must be ${direction === 'request' ? 'code' : 'code or mask'}`)
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
  const { runtime, ...others } = withoutEmpty(isObject(options) ? options : {})
  if (!isObject(options)) add('.options', 'must be an object')
  for (const name of Object.keys(others)) add(`.options.${name}`, 'is not for transforms of type code')
  return { code, options: runtime === undefined ? undefined : { runtime: readRuntime(runtime, add) } }
}

function readMask({ matcher, expression, replacement }: Given, add: Add) {
  const expected = `must be a regular expression with a group, of at most ${MOST_EXPRESSION_CHARACTERS} characters`
  const kind = typeof matcher === 'string' ? matcher.toLowerCase() : undefined
  const isOne = typeof replacement === 'string' && [...replacement].length === 1
  if (kind !== 'regex' && kind !== CHASE_MATCHER) add('.matcher', `must be regex or ${CHASE_MATCHER}`)
  if (kind === 'regex' && !isExpression(expression)) add('.expression', expected)
  if (kind === CHASE_MATCHER && expression !== undefined) add('.expression', `is not for ${CHASE_MATCHER}`)
  if (!isOne) add('.replacement', 'must be one character')
  return { matcher, replacement, expression }
}

/** Without the members that say nothing: clients send them for what is not given. */
function withoutEmpty(given: Given): Record<string, unknown> {
  const isEmpty = (value: unknown): boolean =>
    (value ?? '') === '' || (isObject(value) && Object.keys(value).length === 0)
  return Object.fromEntries(Object.entries(given).filter(([, value]) => !isEmpty(value)))
}

/** Whether it is a regular expression that captures something. It is compiled, but never run, in this process. */
function isExpression(text: unknown): boolean {
  if (typeof text !== 'string' || text.length > MOST_EXPRESSION_CHARACTERS) return false
  try {
    // Compiled alone first, so that its parentheses are balanced.
    new RegExp(text)
    // The empty alternative matches first, so that nothing of the expression is tried.
    return new RegExp(`|${text}`).exec('')!.length > 1
  } catch {
    return false
  }
}
