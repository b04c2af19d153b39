/** Simplifies conditions. If only one key is left, an engine finds the matches in an index and reads no other rows. */
import type { Condition } from './store.js'

/**
 * Returns an equivalent condition. Merges an `and` into an outer `and`, and an `or` into an outer `or`. Replaces an
 * `and` or `or` of one part by this part. Drops a field and value that the same `and` or `or` already contains. Returns
 * undefined for a condition that excludes nothing, such as an empty `and`.
 */
export function simplify(condition: Condition | undefined): Condition | undefined {
  if (condition === undefined) return undefined
  if ('and' in condition) return simplifyAnd(condition.and)
  if ('or' in condition) return simplifyOr(condition.or)
  if ('not' in condition) {
    const inner = simplify(condition.not)
    return { not: inner ?? { and: [] } }
  }
  return condition
}

function simplifyAnd(parts: readonly Condition[]): Condition | undefined {
  const simple = parts.flatMap((part) => {
    const inner = simplify(part)
    if (inner === undefined) return []
    return 'and' in inner ? inner.and : [inner]
  })
  const and = dropRepeated(simple)
  return and.length > 1 ? { and } : and[0]
}

function simplifyOr(parts: readonly Condition[]): Condition | undefined {
  const simple: Condition[] = []
  for (const part of parts) {
    const inner = simplify(part)
    if (inner === undefined) return undefined
    for (const each of 'or' in inner ? inner.or : [inner]) simple.push(each)
  }
  const or = dropRepeated(simple)
  return or.length === 1 ? or[0] : { or }
}

function dropRepeated(parts: readonly Condition[]): Condition[] {
  const seen = new Set<string>()
  return parts.filter((part) => {
    if (!('field' in part)) return true
    const name = `${part.field}\0${part.value}`
    const isNew = !seen.has(name)
    seen.add(name)
    return isNew
  })
}
