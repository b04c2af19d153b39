/** Makes all members optional at every depth. Elements of arrays may be undefined. */
export type Lenient<T> = T extends readonly (infer E)[]
  ? readonly (Lenient<E> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: Lenient<T[K]> | undefined }
    : T

/** Requires: the names come from our code, because the name `__proto__` would set the prototype of the copy. */
export function omitUndefined<T extends object>(object: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const kept: { [K in keyof T]?: Exclude<T[K], undefined> } = {}
  for (const name in object) if (object[name] !== undefined) kept[name] = object[name] as never
  return kept
}
