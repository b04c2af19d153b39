/** Query strings: percent-decoding, and the values that an operation's schema asks for. It validates nothing. */
import { CofferError, invalid } from '../errors.js'
import { readText, type Schema } from '../operations/schema.js'
import type { Endpoint } from './router.js'

/**
 * The values of `endpoint`'s query parameters in `search` (without its question mark). Repeated keys are an array where
 * the schema is one; `metadata.k=v` and `metadata[k]=v` are entries of a map, of which the first of a key counts.
 * Unknown parameters are ignored. Text that spells no number stays text, for validation to refuse.
 * @throws CofferError `validation` for bad percent-encoding, and for one value given twice.
 */
export function readQuery({ query }: Endpoint, search: string): Record<string, unknown> {
  const input: Record<string, unknown> = {}
  if (search === '') return input
  for (const pair of search.split('&')) {
    const at = pair.indexOf('=')
    const name = decode(at === -1 ? pair : pair.slice(0, at))
    const text = at === -1 ? '' : decode(pair.slice(at + 1))
    const place = locate(query, name)
    if (place !== undefined) addValue(input, place, text)
  }
  return input
}

/** Where a parameter goes: a property, and for a map the key in it. */
interface Place {
  property: string
  schema: Schema
  key?: string
}

function locate(query: Endpoint['query'], name: string): Place | undefined {
  const schema = Object.hasOwn(query, name) ? query[name] : undefined
  if (schema !== undefined) return schema.type === 'object' ? undefined : { property: name, schema }
  const spelled = /^([a-z_]+)(?:\.(.*)|\[(.*)\])$/su.exec(name)
  const property = spelled?.[1]
  if (property === undefined || !Object.hasOwn(query, property)) return undefined
  const map = query[property]!
  return map.type === 'object'
    ? { property, schema: map, key: spelled?.[2] ?? spelled?.[3] ?? '' }
    : undefined
}

function addValue(input: Record<string, unknown>, { property, schema, key }: Place, text: string): void {
  if (schema.type === 'array') {
    input[property] = [...((input[property] as unknown[]) ?? []), readText(schema.items, text)]
    return
  }
  if (key === undefined) {
    if (property in input) throw invalid(property, 'may be given once')
    input[property] = readText(schema, text)
    return
  }
  // Without a prototype, so that no key means more than itself.
  input[property] ??= Object.create(null)
  const map = input[property] as Record<string, string>
  map[key] ??= text
}

function decode(text: string): string {
  const plain = text.replaceAll('+', ' ')
  if (/^[\x20-\x24\x26-\x7e]*$/.test(plain)) return plain
  try {
    if (/^[\x20-\x7e]*$/.test(plain)) return decodeURIComponent(plain)
  } catch {
    // What follows says it better than the decoder does.
  }
  throw new CofferError(
    'validation',
    'The query is not percent-encoded UTF-8. Encode values with % and two hex digits.',
  )
}
