/** Query strings: percent-decoding, and the values that an operation's schema asks for. It judges spelling alone. */
import { isObject, parseJson } from '../domain/json/json.js'
import { collect } from '../domain/property-errors.js'
import { CofferError, type PropertyErrors } from '../errors.js'
import type { Endpoint } from '../framework/registry.js'
import { readText, type Schema } from '../framework/schema.js'

/**
 * The values of `endpoint`'s query parameters in `search` (without its question mark), and what cannot be read of them.
 * Repeated keys are an array where the schema is one; `metadata.k=v`, `metadata[k]=v` and `metadata={"k":"v"}` are
 * entries of a map, of which the first of a key counts. Unknown parameters are ignored, but not other spellings of
 * known ones. Text that spells no number stays text, for validation to refuse.
 * @throws CofferError `validation` for bad percent-encoding
 */
export function readQuery({ query }: Endpoint, search: string): Query {
  const read: Query = { input: {}, misspelled: {} }
  if (search === '') return read
  for (const pair of search.split('&')) {
    const at = pair.indexOf('=')
    const name = decode(at === -1 ? pair : pair.slice(0, at))
    const text = at === -1 ? '' : decode(pair.slice(at + 1))
    const property = /^[^.[]*/.exec(name)![0]
    if (!Object.hasOwn(query, property)) continue
    collect(read.misspelled, property, () =>
      addValue(read.input, { property, schema: query[property]!, rest: name.slice(property.length) }, text),
    )
  }
  return read
}

export interface Query {
  input: Record<string, unknown>
  /** Complaints by property. */
  misspelled: PropertyErrors
}

/** Where a parameter goes: a property, and what follows its name. */
interface Place {
  property: string
  schema: Schema
  rest: string
}

/** @throws CofferError `validation` for what is spelled in another way than its schema lets it be. */
function addValue(input: Record<string, unknown>, { property, schema, rest }: Place, text: string): void {
  if (schema.type === 'object') {
    // Without a prototype, so that no key means more than itself.
    input[property] ??= Object.create(null)
    const map = input[property] as Record<string, unknown>
    for (const [key, value] of readEntries(rest, text, property)) if (!(key in map)) map[key] = value
    return
  }
  if (rest !== '') throw new CofferError('validation', `is written ${property}=value`)
  if (schema.type === 'array')
    input[property] = [...((input[property] as unknown[]) ?? []), readText(schema.items, text)]
  else if (property in input) throw new CofferError('validation', 'may be given once')
  else input[property] = readText(schema, text)
}

/** What a parameter says of a map: all of it as JSON, or one entry whose key follows the map's name. */
function readEntries(rest: string, text: string, property: string): [string, unknown][] {
  if (rest === '') {
    const map = parseJson(text)
    if (isObject(map)) return Object.entries(map)
  }
  const [, dotted, bracketed] = /^(?:\.(.+)|\[(.+)\])$/su.exec(rest) ?? []
  const key = dotted ?? bracketed
  if (key !== undefined) return [[key, text]]
  const forms = [`${property}.key=value`, `${property}[key]=value`, `${property}={"key":"value"}`]
  throw new CofferError('validation', `is written ${forms.join(', ')}`)
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
