/** `T` with every part optional at any depth. A missing element of an array is undefined. */
export type Lenient<T> = T extends readonly (infer E)[]
  ? readonly (Lenient<E> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: Lenient<T[K]> | undefined }
    : T

/**
 * Copies the members that are not undefined. Requires: the names come from our code, so no name is
 * `__proto__`.
 */
export function omitUndefined<T extends object>(object: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const kept: { [K in keyof T]?: Exclude<T[K], undefined> } = {}
  for (const name in object) if (object[name] !== undefined) kept[name] = object[name] as never
  return kept
}
