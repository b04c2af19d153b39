import { checkContentType, DEFAULT_CONTENT_TYPE } from '../domain/document/content-type.js'
import { about } from '../domain/property-errors.js'
import { invalid, usage } from '../errors.js'
import { isContent } from '../framework/content.js'
import type { OperationInput } from '../framework/context.js'
import type { Relay } from '../framework/operation.js'
import type { RoutedOperation } from '../framework/registry.js'
import type { InputOf } from '../operations/all.js'

/** A stream can be sent only once. */
export type RequestBody = string | Uint8Array | AsyncIterable<Uint8Array>

export interface FormattedRequest {
  method: string
  target: string
  contentType?: string
  body?: RequestBody
}

/**
 * `target`: path and query. There is a body only if the route takes a body.
 * @throws CofferError as {@link formatTarget}
 */
export function formatRequest(definition: RoutedOperation, input: OperationInput): FormattedRequest {
  const { method, parameters, takesBody } = definition.endpoint
  const target = formatTarget(definition, input)
  if (!takesBody) return { method, target }
  const { whole, asSent, types = ['application/json'], form } = definition.http?.body ?? {}
  if (form !== undefined) return { method, target, ...formatForm(form, input) }
  const rest = Object.fromEntries(Object.entries(input).filter(([name]) => !parameters.includes(name)))
  const sent = asSent !== undefined && asSent in input ? input[asSent] : rest
  const body = JSON.stringify(whole === undefined ? sent : (input[whole] ?? null))
  return { method, target, contentType: types[0]!, body }
}

/**
 * Formats a proxy call, whose method, headers and body are sent unchanged.
 * @throws CofferError `usage` for a dry run, which no server performs
 */
export function formatRelayed(relay: Relay, input: OperationInput, prefix: string) {
  const { target, method = 'POST', path = '', headers = {}, body, dry_run } = input as InputOf<'proxy call'>
  if (dry_run === true) throw usage('A dry run needs the vault itself, not a server.')
  const isJson = body !== undefined && typeof body !== 'string'
  const named = target.includes('://') ? 'url' : 'key'
  return {
    method,
    target: relay.path + (path === '' || /^[/?]/.test(path) ? path : `/${path}`),
    headers: { ...headers, [`${prefix}-proxy-${named}`]: target },
    contentType: isJson ? 'application/json' : undefined,
    body: isJson ? JSON.stringify(body) : body,
  }
}

/** Returns path and query of a request. @throws CofferError `validation` for a value that a URL cannot carry */
export function formatTarget({ endpoint, input: schema }: RoutedOperation, input: OperationInput): string {
  const path = endpoint.path.replaceAll(/\{([a-z_]+)\}/g, (_, name: string) => {
    const { [name]: value = schema.properties[name]?.default } = input
    if (value === undefined) throw invalid(name, `is required, as in { ${name}: '…' }`)
    const text = String(value)
    // Proxies drop these segments, so the request would reach another path.
    if (text === '' || text === '.' || text === '..') throw invalid(name, 'cannot be part of a URL')
    return encode(text, name)
  })
  const pairs = Object.keys(endpoint.query).flatMap((name) => formatPairs(name, input[name] ?? undefined))
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`
}

function formatPairs(name: string, value: unknown): string[] {
  if (value === undefined) return []
  const pair = (key: string, item: unknown) => `${encode(key, name)}=${encode(String(item), name)}`
  if (Array.isArray(value)) return value.map((item) => pair(name, item))
  if (typeof value !== 'object') return [pair(name, value)]
  const entries = Object.entries(value as object).filter(([, item]) => item !== undefined)
  return entries.map(([key, item]) => pair(`${name}.${key}`, item))
}

function encode(text: string, name: string): string {
  try {
    return encodeURIComponent(text)
  } catch {
    throw invalid(name, 'has half of a character, which a URL cannot carry')
  }
}

/**
 * Returns a form with a file. The boundary is random, so that nobody can put the boundary into the content on purpose.
 * @throws CofferError `validation` if the content is neither text, bytes nor an iterable of bytes
 */
function formatForm(
  { file, json }: { file: string; json: string },
  { [file]: content, content_type: type, ...rest }: OperationInput,
): Pick<FormattedRequest, 'contentType' | 'body'> {
  const boundary = `coffer-${crypto.randomUUID()}`
  const contentType = `multipart/form-data; boundary=${boundary}`
  const begin = (name: string, more: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`
  const first = `${begin(json, '\r\nContent-Type: application/json')}${JSON.stringify(rest)}\r\n`
  const end = `--${boundary}--\r\n`
  if (content === undefined) return { contentType, body: first + end }
  if (!isContent(content) || (typeof content === 'object' && 'upload' in content))
    throw invalid(file, 'must be a text, bytes, or an iterable of bytes')
  const head = `${first}${begin(file, `; filename="${file}"\r\nContent-Type: ${readType(type)}`)}`
  if (typeof content === 'string') return { contentType, body: `${head}${content}\r\n${end}` }
  if (content instanceof Uint8Array)
    return { contentType, body: Buffer.concat([Buffer.from(head), content, Buffer.from(`\r\n${end}`)]) }
  return { contentType, body: surround(head, content, `\r\n${end}`) }
}

/** @throws CofferError `validation` if the content type cannot be a header */
function readType(given: unknown): string {
  return given === undefined
    ? DEFAULT_CONTENT_TYPE
    : about('content_type', () => checkContentType(String(given)))
}

async function* surround(
  head: string,
  content: AsyncIterable<Uint8Array>,
  end: string,
): AsyncGenerator<Uint8Array> {
  yield Buffer.from(head)
  yield* content
  yield Buffer.from(end)
}
