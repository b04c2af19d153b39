import { invalid, usage } from '../errors.js'
import type { OperationInput } from '../framework/context.js'
import type { Relay } from '../framework/operation.js'
import type { RoutedOperation } from '../framework/registry.js'
import type { InputOf } from '../operations/all.js'

/** `target` is path and query. There is a body only if the route takes one. @throws CofferError as {@link formatTarget} */
export function formatRequest(definition: RoutedOperation, input: OperationInput) {
  const { method, parameters, takesBody } = definition.endpoint
  const target = formatTarget(definition, input)
  if (!takesBody) return { method, target }
  const { whole, asSent, types = ['application/json'] } = definition.http?.body ?? {}
  const rest = Object.fromEntries(Object.entries(input).filter(([name]) => !parameters.includes(name)))
  const sent = asSent !== undefined && asSent in input ? input[asSent] : rest
  const body = JSON.stringify(whole === undefined ? sent : (input[whole] ?? null))
  return { method, target, contentType: types[0], body }
}

/** A call of a proxy, passed on unchanged. @throws CofferError `usage` for a dry run, because no server performs one */
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
