/** Parsing of query strings by the schema of an operation. */
import { isObject, parseJson } from '../domain/json/json.js'
import { collect } from '../domain/property-errors.js'
import { suggestName } from '../domain/text/nearest.js'
import { type PropertyErrors, validationError } from '../errors.js'
import { CONTROL_PATH } from '../framework/operation.js'
import type { Endpoint } from '../framework/registry.js'
import { readText, type Schema } from '../framework/schema.js'

/**
 * The query parameters of `endpoint` in `search` (without the question mark), and their syntax errors. Repeated names
 * give an array if the schema is one. `metadata.k=v`, `metadata[k]=v` and `metadata={"k":"v"}` give entries of a map; the
 * first one of a key counts. Unknown parameters are ignored, except by the control plane, which refuses them. Text that is
 * not a number stays text, which validation then refuses.
 * @throws CofferError `validation` for invalid percent-encoding
 */
export function readQuery({ query, path }: Endpoint, search: string): Query {
  const read: Query = { input: {}, misspelled: {} }
  if (search === '') return read
  for (const pair of search.split('&')) {
    const at = pair.indexOf('=')
    const name = decode(at === -1 ? pair : pair.slice(0, at))
    const text = at === -1 ? '' : decode(pair.slice(at + 1))
    const property = /^[^.[]*/.exec(name)![0]
    if (!Object.hasOwn(query, property)) {
      // A test that misspells a filter would wait for the wrong requests.
      if (path.startsWith(CONTROL_PATH))
        read.misspelled[`query.${property}`] = [
          `is not a parameter${suggestName(property, Object.keys(query))}`,
        ]
      continue
    }
    collect(read.misspelled, property, () =>
      addValue(read.input, { property, schema: query[property]!, rest: name.slice(property.length) }, text),
    )
  }
  return read
}

export interface Query {
  input: Record<string, unknown>
  misspelled: PropertyErrors
}

/** The property of a parameter, and the rest of the parameter's name, such as `.key` or `[key]`. */
interface Target {
  property: string
  schema: Schema
  rest: string
}

/** @throws CofferError `validation` if the form of the parameter does not fit its schema */
function addValue(input: Record<string, unknown>, { property, schema, rest }: Target, text: string): void {
  if (schema.type === 'object') {
    // Without a prototype, so that keys such as `__proto__` are ordinary.
    input[property] ??= Object.create(null)
    const map = input[property] as Record<string, unknown>
    if (schema.maxProperties === 1 && Object.keys(map).length > 0)
      throw validationError('may be given only once')
    for (const [key, value] of readEntries(rest, text, property)) if (!(key in map)) map[key] = value
    return
  }
  if (rest !== '') throw validationError(`must be written as ${property}=value`)
  if (schema.type === 'array')
    input[property] = [...((input[property] as unknown[]) ?? []), readText(schema.items, text)]
  else if (property in input) throw validationError('may be given only once')
  else input[property] = readText(schema, text)
}

/** The entries of a map in one parameter: the whole map as JSON, or one entry with its key in the name. */
function readEntries(rest: string, text: string, property: string): [string, unknown][] {
  if (rest === '') {
    const map = parseJson(text)
    if (isObject(map)) return Object.entries(map)
  }
  const [, dotted, bracketed] = /^(?:\.(.+)|\[(.+)\])$/su.exec(rest) ?? []
  const key = dotted ?? bracketed
  if (key !== undefined) return [[key, text]]
  const forms = [`${property}.key=value`, `${property}[key]=value`, `${property}={"key":"value"}`]
  throw validationError(`must be written as ${forms.join(' or ')}`)
}

function decode(text: string): string {
  const plain = text.replaceAll('+', ' ')
  if (/^[\x20-\x24\x26-\x7e]*$/.test(plain)) return plain
  try {
    if (/^[\x20-\x7e]*$/.test(plain)) return decodeURIComponent(plain)
  } catch {
    // The error below is clearer than the decoder's.
  }
  throw validationError('The query is not percent-encoded UTF-8. Encode values with % and two hex digits.')
}
