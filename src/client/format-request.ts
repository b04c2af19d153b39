/** Formats an operation and its input as an HTTP request, by the route. */
import { invalid } from '../errors.js'
import type { OperationInput } from '../framework/operation.js'
import type { RoutedOperation } from '../framework/registry.js'

/** `target`: path and query; a body only if the route takes one. @throws CofferError as {@link formatTarget} */
export function formatRequest(definition: RoutedOperation, input: OperationInput) {
  const { method, parameters, takesBody } = definition.endpoint
  const target = formatTarget(definition, input)
  if (!takesBody) return { method, target }
  const { wholeBody, sentBody, contentType = 'application/json' } = definition
  const rest = Object.fromEntries(Object.entries(input).filter(([name]) => !parameters.includes(name)))
  const sent = sentBody === undefined ? rest : (input[sentBody] ?? rest)
  const body = JSON.stringify(wholeBody === undefined ? sent : (input[wholeBody] ?? null))
  return { method, target, contentType, body }
}

/** Path and query alone. @throws CofferError `validation` for a value that no URL can carry */
export function formatTarget({ endpoint }: RoutedOperation, input: OperationInput): string {
  const path = endpoint.path.replaceAll(/\{([a-z_]+)\}/g, (_, name: string) => {
    if (input[name] === undefined) throw invalid(name, `is required, as in { ${name}: '…' }`)
    const text = String(input[name])
    // Proxies drop such segments, which would make it a request for something else.
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
