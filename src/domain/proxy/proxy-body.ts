/** Bodies of proxied messages: whether one is text or JSON, and its value. */

import { tryJson } from '../json/json.js'
import type { HeaderMap } from './code-answer.js'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Whether the content is JSON: by its type, or by its beginning if it has no type. */
export function isJsonContent(headers: HeaderMap, text: string): boolean {
  const type = mediaTypeOf(headers)
  if (type !== undefined) return /^application\/(?:[\w.+-]+\+)?json$/.test(type)
  return /^\s*[[{]/.test(text) && tryJson(text) !== undefined
}

export function mediaTypeOf({ 'content-type': type }: HeaderMap): string | undefined {
  return type?.replace(/;.*/s, '').trim().toLowerCase()
}

/** The text of a body; undefined if it is not UTF-8, or compressed. */
export function textOfBody(headers: HeaderMap, body: Uint8Array): string | undefined {
  const { 'content-encoding': encoding = 'identity' } = headers
  if (encoding.trim().toLowerCase() !== 'identity') return undefined
  try {
    return utf8.decode(body)
  } catch {
    return undefined
  }
}

/** The body that code receives: the value of JSON, other content as text, null for an empty body. */
export function readBodyValue(headers: HeaderMap, text: string): unknown {
  if (text === '') return null
  if (mediaTypeOf(headers) === undefined) return /^\s*[[{]/.test(text) ? (tryJson(text) ?? text) : text
  return isJsonContent(headers, text) ? (tryJson(text) ?? text) : text
}
