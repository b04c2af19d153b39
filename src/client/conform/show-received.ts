/** Describes answers of a server for a report. The report may be published, so it contains no received data. */
import { readPath } from './cases.js'

export interface Show {
  value(value: unknown): string
  body(body: unknown): string
  messages(messages: unknown): string
}

export const EVERYTHING: Show = {
  value: (value) => JSON.stringify(value),
  body: (body) => JSON.stringify(body),
  messages: (messages) => JSON.stringify(messages),
}

const ID_OR_DATE =
  /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]{8,12}(?:Z|\+00:00))$/
const LONG_NUMBER = /\d(?:[ -]?\d){8,}/g
const KEY = /\b(?:key|sk|pk|sess)_\w+/g
const MAX_NUMBER = 1_000_000

/** `known`: the texts that the case itself contains. These texts are published with Coffer, so they are no secrets. */
export function showReceived(known: ReadonlySet<string>): Show {
  const value = (received: unknown): string => {
    if (typeof received === 'string')
      return known.has(received) || ID_OR_DATE.test(received)
        ? JSON.stringify(received)
        : `a text of ${received.length} characters`
    if (typeof received === 'number' && Math.abs(received) >= MAX_NUMBER) return 'a large number'
    if (Array.isArray(received)) return `an array of ${received.length}`
    return typeof received === 'object' && received !== null ? 'an object' : String(received)
  }
  const messages = (received: unknown) =>
    received === undefined
      ? 'missing'
      : JSON.stringify(received).replaceAll(KEY, '<key>').replaceAll(LONG_NUMBER, '<number>')
  const body = (received: unknown) => {
    const parts = ['title', 'detail', 'errors'].map((name) => [name, readPath(received, name)] as const)
    const told = parts.filter(([, part]) => part !== undefined)
    return told.length === 0 ? value(received) : messages(Object.fromEntries(told))
  }
  return { value, body, messages }
}
