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
  const [single, list] = [given[one] ?? undefined, given[many] ?? undefined]
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

/** The transform without properties that its type lacks; none if it is wrong. */
function readTransform(given: unknown, direction: Direction, errors: PropertyErrors, path: string) {
  const { type = 'code', code, matcher, expression, replacement } = isObject(given) ? given : {}
  const faults: [isWrong: boolean, name: string, message: string][] = []
  if (!isObject(given)) faults.push([true, '', 'must be an object'])
  else if (type === 'code') {
    const bytes = typeof code === 'string' ? new TextEncoder().encode(code).length : 0
    faults.push([bytes === 0, '.code', 'is required, as text'])
    faults.push([bytes > MAX_CODE_BYTES, '.code', `must have at most ${MAX_CODE_BYTES} bytes`])
  } else if (type === 'mask' && direction === 'response') {
    const expected = `must be a regular expression with a group, of at most ${MOST_EXPRESSION_CHARACTERS} characters`
    const isOne = typeof replacement === 'string' && [...replacement].length === 1
    faults.push([matcher !== 'regex', '.matcher', 'must be regex'])
    faults.push([!isExpression(expression), '.expression', expected])
    faults.push([!isOne, '.replacement', 'must be one character'])
  } else faults.push([true, '.type', `must be ${direction === 'request' ? 'code' : 'code or mask'}`])
  const wrong = faults.filter(([isWrong]) => isWrong)
  for (const [, name, message] of wrong) addError(errors, `${path}${name}`, message)
  if (wrong.length > 0) return []
  return [(type === 'code' ? { type, code } : { type, matcher, expression, replacement }) as ProxyTransform]
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
