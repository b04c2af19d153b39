/** Describes the shape of a JSON value without its data, for the list of requests. */
import { isObject } from '../domain/json/json.js'
import type { RegisteredOperation } from '../framework/registry.js'

const MAX_DEPTH = 6
const MAX_NAMES = 50

/** Property names of token data that no schema declares. */
const DATA_NAMES = [
  ...['number', 'expiration_month', 'expiration_year', 'cvc'],
  ...['routing_number', 'account_number', 'name', 'email', 'phone', 'address'],
]

/** Returns the property names that the operations declare. Any other property name could be data. */
export function listNames(operations: Iterable<RegisteredOperation>): ReadonlySet<string> {
  const names = new Set(DATA_NAMES)
  for (const { input, output } of operations) for (const schema of [input, output]) addNames(schema, names)
  return names
}

function addNames(schema: unknown, names: Set<string>): void {
  if (!isObject(schema)) return
  for (const [name, property] of Object.entries(isObject(schema.properties) ? schema.properties : {})) {
    names.add(name)
    addNames(property, names)
  }
  addNames(schema.items, names)
}

export const describeLength = ({ length }: string) =>
  `(${length} ${length === 1 ? 'character' : 'characters'})`

/**
 * Replaces each value by its type, and each text by its length: `{ number: '(16 characters)' }`. Property names that
 * are not in `names` are only counted, because they could be data.
 */
export function describeShape(value: unknown, names: ReadonlySet<string>, depth = 0): unknown {
  if (value === null) return null
  if (typeof value === 'string') return describeLength(value)
  if (Array.isArray(value)) return `(array of ${value.length})`
  if (!isObject(value)) return `(${typeof value})`
  const known = Object.entries(value).filter(([name]) => names.has(name))
  if (depth === MAX_DEPTH || known.length === 0 || known.length > MAX_NAMES) return '(object)'
  const others = Object.keys(value).length - known.length
  return {
    ...Object.fromEntries(known.map(([name, item]) => [name, describeShape(item, names, depth + 1)])),
    ...(others > 0 && { '…': `(${others} more)` }),
  }
}
