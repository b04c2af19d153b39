/** The configuration of a proxy. */
import type { PropertyErrors } from '../../errors.js'
import { isObject } from '../json/json.js'
import { addError, refuseErrors } from '../property-errors.js'
import { MAX_CODE_BYTES } from '../reactor/formula.js'
import { checkConfiguration } from '../reactor/reactor.js'

/** Code changes a request or an answer; a mask hides parts of an answer. */
export type ProxyTransform =
  | { type: 'code'; code: string }
  | { type: 'mask'; matcher: 'regex'; expression: string; replacement: string }

const MOST_URL_CHARACTERS = 2000
const MOST_TRANSFORMS = 10
const MOST_EXPRESSION_CHARACTERS = 1000
/** Properties of other services that this one lacks; refused, because they would change what the proxy does. */
const UNSUPPORTED = ['request_reactor_id', 'response_reactor_id']
export const DIRECTIONS = ['request', 'response'] as const
type Direction = (typeof DIRECTIONS)[number]

type Given = Readonly<Record<string, unknown>>

/** Checks what the schema cannot say; values may have the wrong type. @throws CofferError `validation` */
export function checkProxy(given: Given): void {
  const errors: PropertyErrors = {}
  for (const name of UNSUPPORTED)
    if ((given[name] ?? undefined) !== undefined)
      addError(errors, name, 'is not supported here: use transforms')
  const { destination_url, configuration } = given
  if (typeof destination_url === 'string' && readDestination(destination_url) === undefined)
    addError(errors, 'destination_url', DESTINATION_RULE)
  checkConfiguration(configuration, errors)
  for (const direction of DIRECTIONS) collectTransforms(given, direction, errors)
  refuseErrors(errors)
}

export const DESTINATION_RULE = `must be an http or https URL without user, query and fragment, of at most ${MOST_URL_CHARACTERS} characters`

/** The URL of a destination; undefined if it is not allowed. */
export function readDestination(text: string): URL | undefined {
  if (text.length > MOST_URL_CHARACTERS || !/^https?:\/\/[\x21-\x7e]+$/i.test(text) || /[?#\\]/.test(text))
    return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url === undefined || url.username !== '' || url.password !== '' ? undefined : url
}

/** The transforms of one direction. Contract: {@link checkProxy} accepted `given`. */
export function readTransforms(given: Given, direction: Direction): ProxyTransform[] {
  return collectTransforms(given, direction, {})
}

/** Reads the plural form, or the singular one, which may be an object or an array of one. */
function collectTransforms(given: Given, direction: Direction, errors: PropertyErrors): ProxyTransform[] {
  const one = `${direction}_transform`
  const many = `${one}s`
  const single = given[one] ?? undefined
  const list = given[many] ?? undefined
  if (single !== undefined && list !== undefined) addError(errors, one, `cannot be given beside ${many}`)
  if (single !== undefined && Array.isArray(single) && single.length !== 1) {
    addError(errors, one, 'must be one transform')
    return []
  }
  if (single !== undefined) {
    const transform = Array.isArray(single) ? single[0] : single
    return [readTransform(transform, direction, one, errors)].flat()
  }
  if (list === undefined) return []
  if (!Array.isArray(list)) addError(errors, many, 'must be an array')
  else if (list.length > MOST_TRANSFORMS) addError(errors, many, `must have at most ${MOST_TRANSFORMS} items`)
  else return list.flatMap((each, index) => readTransform(each, direction, `${many}[${index}]`, errors))
  return []
}

/** The transform without properties that its type lacks; none if it is wrong. */
function readTransform(
  given: unknown,
  direction: Direction,
  path: string,
  errors: PropertyErrors,
): ProxyTransform[] {
  if (!isObject(given)) {
    addError(errors, path, 'must be an object')
    return []
  }
  const { type = 'code', code, matcher, expression, replacement } = given
  if (type === 'code') {
    const isCode = typeof code === 'string' && code !== ''
    if (!isCode) addError(errors, `${path}.code`, 'is required, as text')
    else if (new TextEncoder().encode(code).length > MAX_CODE_BYTES)
      addError(errors, `${path}.code`, `must have at most ${MAX_CODE_BYTES} bytes`)
    return isCode ? [{ type, code }] : []
  }
  if (type !== 'mask' || direction === 'request') {
    addError(errors, `${path}.type`, `must be ${direction === 'request' ? 'code' : 'code or mask'}`)
    return []
  }
  if (matcher !== 'regex') addError(errors, `${path}.matcher`, 'must be regex')
  const isMatched = typeof expression === 'string' && expression.length <= MOST_EXPRESSION_CHARACTERS
  if (!isMatched || !hasGroup(expression))
    addError(
      errors,
      `${path}.expression`,
      `must be a regular expression with a group, of at most ${MOST_EXPRESSION_CHARACTERS} characters`,
    )
  const isOne = typeof replacement === 'string' && [...replacement].length === 1
  if (!isOne) addError(errors, `${path}.replacement`, 'must be one character')
  return isMatched && isOne ? [{ type, matcher: 'regex', expression, replacement }] : []
}

/** Whether the regular expression is valid and captures something. It is compiled, but never run, in this process. */
function hasGroup(expression: string): boolean {
  try {
    // Compiled alone first, so that its parentheses are balanced.
    new RegExp(expression)
    // The empty alternative matches first, so that nothing of the expression is tried.
    return new RegExp(`|${expression}`).exec('')!.length > 1
  } catch {
    return false
  }
}
