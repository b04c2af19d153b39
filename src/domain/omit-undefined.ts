/** Leaving out what has no value. Knows nothing of what the values are. */

/** A value of which any part may be missing, at any depth; in an array undefined stands for it. */
export type Lenient<T> = T extends readonly (infer E)[]
  ? readonly (Lenient<E> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: Lenient<T[K]> | undefined }
    : T

/** The same object without the members that are undefined. Contract: its names are ours, not a caller's. */
export function omitUndefined<T extends object>(object: T): Partial<T> {
  const kept: Partial<T> = {}
  for (const name in object) if (object[name] !== undefined) kept[name] = object[name]
  return kept
}
