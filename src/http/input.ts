import { decodeUtf8, isObject, MAX_JSON_VALUES, parseJson } from '../domain/json/json.js'
import { collect } from '../domain/property-errors.js'
import { suggestName } from '../domain/text/nearest.js'
import { bodyIsNoObject, CofferError, type PropertyErrors, validationError } from '../errors.js'
import { CONTROL_PATH, isControl } from '../framework/declaration.js'
import type { AnyOperation } from '../framework/operation.js'
import type { Endpoint } from '../framework/registry.js'
import { readText, type Schema } from '../framework/schema.js'
import type { HttpRequest } from './exchange.js'
import { readHeader } from './headers.js'

const JSON_MEDIA_TYPE = 'application/json'

/** @throws CofferError `unsupported_media_type`, `too_large`, `validation`; they are checked in this order */
export async function readBodyInput(request: HttpRequest, operation: AnyOperation, limitBytes: number) {
  checkContentType(request, operation)
  const bytes = await readWhole(request, limitBytes)
  // A request of the control plane may omit the body if no property of the body is required.
  const needed = ((operation.input.required ?? []) as readonly string[]).filter(
    (name) => operation.route?.includes(`{${name}}`) !== true,
  )
  const needsNothing = isControl(operation) && needed.length === 0
  const isOptional = needsNothing || operation.http?.body?.isOptional === true
  if (bytes.length === 0 && isOptional) return {}
  if (bytes.length === 0) throw validationError('The request needs a JSON body.')
  const source = 'the request body'
  const value = parseJson(decodeUtf8(bytes, source), { source, maxValues: MAX_JSON_VALUES })
  const { whole, asSent, mayBeAny } = operation.http?.body ?? {}
  if (whole !== undefined) return { [whole]: value }
  if (isObject(value)) return asSent === undefined ? value : { ...value, [asSent]: value }
  if (asSent !== undefined && mayBeAny) return { [asSent]: value }
  throw bodyIsNoObject()
}

export async function readWhole(request: HttpRequest, limitBytes: number): Promise<Uint8Array> {
  const bytes = await request.readBody(limitBytes)
  await request.lease?.arrive()
  if (bytes !== undefined) return bytes
  throw bodyTooLarge(limitBytes)
}

export function bodyTooLarge(limitBytes: number): CofferError {
  return new CofferError('too_large', `The body is larger than the limit of ${limitBytes} bytes.`)
}

/** A missing content type counts as JSON if the operation accepts JSON. */
export function checkContentType({ headers }: HttpRequest, operation: AnyOperation): void {
  const accepted = operation.http?.body?.types ?? [JSON_MEDIA_TYPE]
  const encoding = readHeader(headers, 'content-encoding')?.trim().toLowerCase()
  if (encoding !== undefined && encoding !== '' && encoding !== 'identity')
    throw unsupported('Compressed bodies are not supported. Send the body without Content-Encoding.')
  const header = readHeader(headers, 'content-type')
  const isJson = header === undefined || header === JSON_MEDIA_TYPE
  if (isJson && accepted.includes(JSON_MEDIA_TYPE)) return
  const [type = '', ...parameters] = (header ?? '').split(';').map((part) => part.trim().toLowerCase())
  if (!accepted.includes(type)) throw unsupported(`The body must be sent as ${accepted[0]}.`)
  for (const parameter of parameters) {
    const [name, value = ''] = parameter.split('=').map((part) => part.trim())
    if (name === 'charset' && !['utf-8', 'utf8'].includes(value.replaceAll('"', '')))
      throw unsupported('The body must be UTF-8.')
  }
}

function unsupported(message: string): CofferError {
  return new CofferError('unsupported_media_type', message)
}

/**
 * An entry of a map is `metadata.k=v` or `metadata[k]=v`, and a whole map is `metadata={"k":"v"}`. The first entry of a
 * repeated key is used. If a number is expected and the parameter is no number, the value stays a text, which the
 * validation refuses.
 * @throws CofferError `validation` for invalid percent-encoding
 */
export function readQuery({ query, path }: Endpoint, search: string) {
  const input: Record<string, unknown> = {}
  const parseErrors: PropertyErrors = {}
  for (const pair of search === '' ? [] : search.split('&')) {
    const at = pair.indexOf('=')
    const name = decode(at === -1 ? pair : pair.slice(0, at))
    const text = at === -1 ? '' : decode(pair.slice(at + 1))
    const property = /^[^.[]*/.exec(name)![0]
    const rest = name.slice(property.length)
    if (Object.hasOwn(query, property))
      collect(parseErrors, property, () => {
        input[property] = addValue(query[property]!, input[property], property, rest, text)
      })
    // Only the control plane refuses unknown parameters, because a test whose misspelled filter is ignored would wait
    // for the wrong requests.
    else if (path.startsWith(CONTROL_PATH))
      parseErrors[`query.${property}`] = [`is not a parameter${suggestName(property, Object.keys(query))}`]
  }
  return { input, parseErrors }
}

/**
 * Adds a parameter to the value of `property`.
 * @throws CofferError `validation` if the parameter does not fit the schema
 */
function addValue(schema: Schema, before: unknown, property: string, rest: string, text: string): unknown {
  if (schema.type === 'object') {
    // The map has no prototype, so that a key such as `__proto__` is an ordinary key.
    const map = (before ?? Object.create(null)) as Record<string, unknown>
    if (schema.maxProperties === 1 && Object.keys(map).length > 0)
      throw validationError('may be given only once')
    for (const [key, value] of readEntries(rest, text, property)) if (!(key in map)) map[key] = value
    return map
  }
  if (rest !== '') throw validationError(`must be written as ${property}=value`)
  if (schema.type === 'array') return [...((before as unknown[]) ?? []), readText(schema.items, text)]
  if (before !== undefined) throw validationError('may be given only once')
  return readText(schema, text)
}

/** A parameter contains a whole map as JSON, or one entry whose key is in the name of the parameter. */
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
  try {
    if (/^[\x20-\x7e]*$/.test(plain)) return plain.includes('%') ? decodeURIComponent(plain) : plain
  } catch {
    // The error that is thrown below is clearer than the error of the decoder.
  }
  throw validationError('The query is not percent-encoded UTF-8. Encode values with % and two hex digits.')
}
