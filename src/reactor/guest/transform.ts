/** Converts the messages of proxy transforms for the code, and its results back. The host never parses a body. */
import { Buffer } from 'node:buffer'
import { isObject } from '../../domain/json/json.js'
import { readBodyValue } from '../../domain/proxy/proxy-body.js'
import { MOST_TRANSFORMED_BYTES, type Transformed } from '../../framework/ports/reactors.js'
import type { TransformedMessage } from '../messages.js'

export function describeMessage(
  { direction, headers, method, path, query }: TransformedMessage,
  body: Buffer,
): Record<string, unknown> {
  const value = readBodyValue(headers, body.toString())
  return direction === 'response' ? { body: value, headers } : { body: value, headers, method, path, query }
}

/** Reads a message, wrapped or bare, or an answer instead of a request. @throws Error for anything else */
export function readTransformed(
  result: unknown,
  direction: TransformedMessage['direction'],
): { raw: Transformed; body?: Buffer } {
  if (!isObject(result)) throw new Error('a transform must return an object')
  const isAnswer = direction === 'request' && result.res !== undefined
  const inner = isAnswer || direction === 'response' ? result.res : result.req
  if (isAnswer && !isObject(inner)) throw new Error('res must be an object')
  const { statusCode = 200, headers, body } = inner === undefined ? result : isObject(inner) ? inner : {}
  const isJson = typeof body !== 'string'
  return {
    raw: { headers, ...(isAnswer ? { answer: { statusCode, isJson } } : {}) },
    ...(body === undefined ? {} : { body: toBytes(body, isAnswer) }),
  }
}

function toBytes(body: unknown, isAnswer: boolean): Buffer {
  if (body === null && !isAnswer) return Buffer.alloc(0)
  const bytes = Buffer.from(typeof body === 'string' ? body : (JSON.stringify(body) ?? ''))
  if (bytes.length <= MOST_TRANSFORMED_BYTES) return bytes
  throw new Error(`a transform must return a body of at most ${MOST_TRANSFORMED_BYTES} bytes`)
}
