/** Results of the transforms of proxies, and the program of masks. */
import { CofferError } from '../../errors.js'
import { type HeaderMap, readHeaders } from './code-answer.js'

export interface ProxyMessage {
  headers: HeaderMap
  body: Uint8Array
}

/** @throws CofferError `reactor_failed` */
export function readReturnedHeaders(given: unknown): Record<string, string> {
  return orFailed(() => readHeaders(given, 'headers'))
}

/** Calls `read`. Turns its CofferError into `reactor_failed`. */
export function orFailed<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    throw new CofferError('reactor_failed', "The proxy's code failed.", {
      errors: { error: [error.message] },
    })
  }
}

/**
 * Replaces every character that a group of `expression` matches. It runs where time and memory are limited, because an
 * expression may backtrack. Half of a surrogate pair stands for the whole character.
 */
export const MASK_PROGRAM = `module.exports = async ({ args, configuration: { expression, replacement } }) => {
  const text = args.body ?? ''
  const isCovered = new Uint8Array(text.length + 1)
  for (const { indices } of text.matchAll(new RegExp(expression, 'dg')))
    for (const span of indices.slice(1)) if (span !== undefined) isCovered.fill(1, span[0], span[1])
  const whole = []
  let pieces = []
  let kept = 0
  for (let at = isCovered.indexOf(1); at >= 0; at = isCovered.indexOf(1, at)) {
    if (at > kept && text.codePointAt(at - 1) > 0xffff) at -= 1
    pieces.push(text.slice(kept, at))
    for (kept = at; isCovered[kept] === 1 || kept === at; kept += text.codePointAt(kept) > 0xffff ? 2 : 1)
      pieces.push(replacement)
    at = kept
    if (pieces.length < 100000) continue
    whole.push(pieces.join(''))
    pieces = []
  }
  return { body: whole.join('') + pieces.join('') + text.slice(kept) }
}`
