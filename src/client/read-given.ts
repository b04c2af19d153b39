/** Reads answers that reactor code, or the destination of a proxy, gave in full: our servers mark them. */
import { type HeaderMap, passAnswerHeaders } from '../domain/proxy/code-answer.js'
import type { Outcome } from '../framework/outcome.js'
import type { RegisteredOperation } from '../framework/registry.js'

/** Headers that a server adds to such an answer itself. */
const ADDED = ['cache-control', 'content-security-policy', 'date', 'x-content-type-options']
const PLAIN = 'text/plain; charset=utf-8'

interface GivenAnswer {
  status: number
  headers: Iterable<readonly [string, string]>
  text: string
  parse(text: string): unknown
}

/** Status, headers and body of an answer that the code gave; undefined if the server made it itself. */
export function readGiven(
  { mayAnswerHttp }: RegisteredOperation,
  { status, headers, text, parse }: GivenAnswer,
  prefix: string,
): Outcome | undefined {
  const all = new Map([...headers].map(([name, value]) => [name.toLowerCase(), value]))
  if (mayAnswerHttp !== true || all.get('content-security-policy') !== 'sandbox') return undefined
  const type = all.get('content-type') ?? ''
  const isJson = type.startsWith('application/json')
  for (const name of isJson || type === PLAIN ? [...ADDED, 'content-type'] : ADDED) all.delete(name)
  const passed: HeaderMap = passAnswerHeaders(Object.fromEntries(all), prefix)
  return { status, headers: passed, result: text === '' ? undefined : isJson ? parse(text) : text }
}
