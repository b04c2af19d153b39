/** `T` with every part optional at any depth; a missing array element is undefined. */
export type Lenient<T> = T extends readonly (infer E)[]
  ? readonly (Lenient<E> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: Lenient<T[K]> | undefined }
    : T

/** A copy without undefined members. Contract: the names come from our code, so none is `__proto__`. */
export function omitUndefined<T extends object>(object: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const kept: { [K in keyof T]?: Exclude<T[K], undefined> } = {}
  for (const name in object) if (object[name] !== undefined) kept[name] = object[name] as never
  return kept
}
