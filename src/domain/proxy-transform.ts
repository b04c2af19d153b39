/** What the transforms of proxies are given and what they answer, apart from running them. */
import { CofferError, validationError } from '../errors.js'
import { type CodeAnswer, type HeaderMap, readCodeAnswer, readHeaders } from './code-answer.js'
import { isObject } from './json/json.js'
import { type ProxyRequest, readBodyValue, textOfBody } from './proxy-request.js'

/** Of a body that a transform is given, or returns. */
export const MOST_TRANSFORMED_BYTES = 8 * 1024 * 1024

export interface ProxyMessage {
  headers: HeaderMap
  body: Uint8Array
}

export function describeRequest({ method, path, query, headers, body }: ProxyRequest) {
  return { body: readBodyValue(headers, body), headers, method, path, query: query === '' ? '' : `?${query}` }
}

export function describeAnswer(answer: ProxyMessage) {
  textOfAnswer(answer)
  return { body: readBodyValue(answer.headers, answer.body), headers: answer.headers }
}

/** What code made of a message: it again, or an answer instead. @throws CofferError `reactor_failed` */
export function readTransformed(
  result: unknown,
  before: ProxyMessage,
  direction: 'request' | 'response',
  prefix: string,
): ProxyMessage | CodeAnswer {
  try {
    if (!isObject(result)) throw validationError('a transform must return an object')
    if (direction === 'request' && result.res !== undefined) return readCodeAnswer(result.res, prefix)
    const wrapped = direction === 'request' ? result.req : result.res
    const { body, headers } = wrapped === undefined ? result : isObject(wrapped) ? wrapped : {}
    return {
      headers: headers === undefined ? before.headers : readHeaders(headers, 'headers'),
      body: body === undefined ? before.body : toBytes(body),
    }
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    throw new CofferError('reactor_failed', "The proxy's code failed.", {
      errors: { error: [error.message] },
    })
  }
}

function toBytes(body: unknown): Uint8Array {
  if (body === null) return new Uint8Array()
  const bytes = new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))
  if (bytes.length <= MOST_TRANSFORMED_BYTES) return bytes
  throw validationError(`a transform must return a body of at most ${MOST_TRANSFORMED_BYTES} bytes`)
}

/** A program that finds what a mask covers; it runs where its time is limited, because an expression may backtrack. */
export const MASK_PROGRAM = `module.exports = async ({ args }) => {
  const spans = []
  for (const match of args.text.matchAll(new RegExp(args.expression, 'dg')))
    for (const span of match.indices.slice(1))
      if (span === undefined || span[0] === span[1]) continue
      else if (span[0] === spans.at(-1)) spans[spans.length - 1] = span[1]
      else spans.push(...span)
  return { spans }
}`

/** The text of an answer. @throws CofferError `bad_gateway` for a body that is not text */
export function textOfAnswer({ headers, body }: ProxyMessage): string {
  const text = textOfBody(headers, body)
  if (text === undefined) throw new CofferError('bad_gateway', 'The answer of the destination is not text.')
  return text
}

/** Replaces every character in the spans, which are pairs of start and end in `text`. */
export function applyMask(text: string, result: unknown, replacement: string): Uint8Array {
  const given = isObject(result) && Array.isArray(result.spans) ? (result.spans as number[]) : []
  const spans = given.flatMap((start, at) => (at % 2 === 0 ? [{ start, end: given[at + 1]! }] : []))
  spans.sort((left, right) => left.start - right.start)
  let masked = ''
  let at = 0
  for (const span of spans) {
    // Half of a surrogate pair stands for the whole character.
    const start = /[\udc00-\udfff]/.test(text[span.start] ?? '') ? span.start - 1 : span.start
    const end = /[\ud800-\udbff]/.test(text[span.end - 1] ?? '') ? span.end + 1 : span.end
    if (end <= at) continue
    const from = Math.max(at, start)
    masked += text.slice(at, from) + replacement.repeat([...text.slice(from, end)].length)
    at = end
  }
  return new TextEncoder().encode(masked + text.slice(at))
}
