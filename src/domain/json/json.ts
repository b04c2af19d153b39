/**
 * The gate every untrusted JSON text passes, and the one canonical spelling of a JSON value. It knows nothing of
 * what the JSON is for; whoever calls says how the text is named in messages.
 */
import { CofferError } from '../../errors.js'
import { findFault } from './json-scan.js'

export { exactNumber } from './json-number.js'
export { MAX_JSON_DEPTH } from './json-scan.js'

export interface JsonOptions {
  /** How messages name the text: `the request body`, `--data`. */
  source?: string
  /** `usage` when a person typed the text on a command line. */
  code?: 'validation' | 'usage'
}

/**
 * Reads one JSON value (RFC 8259), stricter than `JSON.parse`: refuses repeated names, names that reach prototypes,
 * nesting beyond `MAX_JSON_DEPTH`, numbers that would change their value, lone surrogates and a byte order mark.
 * Linear in time; memory is bounded by the text.
 * @throws CofferError `validation` (or `options.code`) naming line and column (both from 1, in UTF-16 units) and what
 * was expected, never the text itself.
 */
export function parseJson(text: string, options: JsonOptions = {}): unknown {
  const fault = findFault(text)
  if (fault === undefined) return JSON.parse(text)
  const source = options.source ?? 'the JSON text'
  throw new CofferError(
    options.code ?? 'validation',
    `${source} is refused ${place(text, fault.at)}: ${fault.reason}`,
  )
}

/** Whether a JSON value is an object, and neither an array nor null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Decodes UTF-8; a byte order mark stays in the text, where {@link parseJson} refuses it.
 * @throws CofferError `validation` when the bytes are not UTF-8.
 */
export function decodeUtf8(bytes: Uint8Array, source = 'the text'): string {
  try {
    return STRICT_UTF8.decode(bytes)
  } catch (cause) {
    throw new CofferError(
      'validation',
      `${source} is not UTF-8; encode it as UTF-8 without a byte order mark`,
      { cause },
    )
  }
}

/** JSON text with the names of every object in code unit order and no white space: equal values, equal texts. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null'
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const members: string[] = []
  for (const name of Object.keys(value).sort()) {
    const member = (value as Record<string, unknown>)[name]
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${canonicalJson(member)}`)
  }
  return `{${members.join(',')}}`
}

function place(text: string, at: number): string {
  const before = text.slice(0, at).split('\n')
  return `at line ${before.length}, column ${before.at(-1)!.length + 1}`
}
