/** Leaving out what has no value. Knows nothing of what the values are. */

/** The same object without the members that are undefined. Contract: its names are ours, not a caller's. */
export function present<T extends object>(object: T): Partial<T> {
  const kept: Partial<T> = {}
  for (const name in object) if (object[name] !== undefined) kept[name] = object[name]
  return kept
}
