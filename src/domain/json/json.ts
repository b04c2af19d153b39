import { CofferError, validationError } from '../../errors.js'
import { findFault, MAX_JSON_DEPTH } from './json-scan.js'

export { exactNumber, findFault, MAX_JSON_DEPTH } from './json-scan.js'

/** Limits the values and property names of one body or token together. More values would delay other requests. */
export const MAX_JSON_VALUES = 50_000

/**
 * Stricter than `JSON.parse`: refuses repeated names, names such as `__proto__`, nesting beyond `MAX_JSON_DEPTH`,
 * numbers that change in a double, lone surrogates and a byte order mark. `maxValues` limits values and
 * property names together. `firstLine`: the number of the first line in messages.
 * @throws CofferError `code`. The message never contains the parsed text.
 */
export function parseJson(
  text: string,
  {
    source = 'the JSON text',
    code = 'validation',
    maxValues,
    firstLine = 1,
  }: { source?: string; code?: 'validation' | 'usage'; maxValues?: number; firstLine?: number } = {},
): unknown {
  const fault = findFault(text, maxValues)
  if (fault === undefined) return JSON.parse(text)
  const before = text.slice(0, fault.at).split('\n')
  const place = `line ${firstLine + before.length - 1}, column ${before.at(-1)!.length + 1}`
  throw new CofferError(code, `${source} is refused at ${place}: ${fault.message}`)
}

export function parseJsonOrNothing(text: string): unknown {
  return findFault(text) === undefined ? JSON.parse(text) : undefined
}

export function tryJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Keeps a byte order mark, which {@link parseJson} refuses. */
export function decodeUtf8(bytes: Uint8Array, source = 'the text'): string {
  try {
    return STRICT_UTF8.decode(bytes)
  } catch (cause) {
    throw validationError(`${source} is not UTF-8; encode it as UTF-8 without a byte order mark`, { cause })
  }
}

/** Equal values give equal texts: without white space, and with names in the order of their code units. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null'
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  // `join` would copy a long text again at each level of nesting.
  let members = ''
  for (const name of Object.keys(value).sort()) {
    const member = (value as Record<string, unknown>)[name]
    if (member === undefined) continue
    members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(member)}`
  }
  return `{${members}}`
}

export function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  let count = 1
  if (Array.isArray(value)) for (const item of value) count += countValues(item)
  else for (const name in value) count += 1 + countValues((value as Record<string, unknown>)[name])
  return count
}

/** Applies a JSON Merge Patch (RFC 7396). The result may share objects with the arguments. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const merged = new Map(isObject(target) ? Object.entries(target) : [])
  for (const [name, member] of Object.entries(patch)) {
    if (member === null) merged.delete(name)
    else merged.set(name, mergePatch(merged.get(name), member))
  }
  return Object.fromEntries(merged)
}

/** A recursion over a deeper value could overflow the stack. */
export function isDeep(value: unknown, depth = MAX_JSON_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth === 0 || Object.values(value).some((inner) => isDeep(inner, depth - 1))
}
