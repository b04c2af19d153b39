/** The message that a transform receives, and its result: a message or an answer. */
import { Buffer } from 'node:buffer'
import { isObject } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { readBodyValue } from '../../domain/proxy/code-answer.js'
import { MAX_TRANSFORMED_BYTES, type Transformed } from '../../framework/ports/reactors.js'
import type { TransformedMessage } from '../messages.js'

type Direction = TransformedMessage['direction']

const EMPTY = Buffer.alloc(0)

/**
 * The result of a transform must have one of these members, or be an empty object. More members are allowed, because
 * code may return its argument.
 */
const MEMBERS: Readonly<Record<Direction, readonly string[]>> = {
  request: ['req', 'res', 'body', 'headers'],
  response: ['res', 'body', 'headers'],
}

/** Only the guest parses the body, never the host. */
export function describeMessage({ direction, headers, ...message }: TransformedMessage, bytes: Buffer) {
  const body = readBodyValue(headers, bytes.toString())
  return { body, headers, ...message }
}

/**
 * Reads the result of a transform: a message, or an answer in place of a request. An empty object leaves the message
 * unchanged.
 * @throws Error if the result is neither a message nor an answer
 */
export function readTransformed(result: unknown, direction: Direction): { raw: Transformed; body?: Buffer } {
  if (!isObject(result)) throw new Error('a transform must return an object')
  const names = Object.keys(result)
  if (names.length > 0 && !names.some((name) => MEMBERS[direction].includes(name)))
    throw new Error(`a transform of a ${direction} must return ${MEMBERS[direction].join(', ')} or {}`)
  const isAnswer = direction === 'request' && result.res !== undefined
  const outer = isAnswer || direction === 'response' ? 'res' : 'req'
  const inner = result[outer]
  if (isAnswer && !isObject(inner)) throw new Error('res must be an object')
  if ((inner ?? undefined) !== undefined && !isObject(inner)) throw new Error(`${outer} must be an object`)
  const { statusCode, headers, body } = inner === undefined ? result : isObject(inner) ? inner : {}
  const isJson = typeof body !== 'string'
  const raw = isAnswer
    ? { headers, answer: { statusCode: statusCode ?? 200, isJson } }
    : { headers, ...(direction === 'response' ? omitUndefined({ statusCode }) : {}) }
  if (body === undefined) return { raw }
  const text = isJson ? (JSON.stringify(body) ?? '') : body
  const bytes = body === null && !isAnswer ? EMPTY : Buffer.from(text)
  if (bytes.length <= MAX_TRANSFORMED_BYTES) return { raw, body: bytes }
  throw new Error(`a transform must return a body of at most ${MAX_TRANSFORMED_BYTES} bytes`)
}
