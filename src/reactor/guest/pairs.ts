/** The common methods of `Headers`, `URLSearchParams` and `FormData`. */
export abstract class Pairs<T = string> {
  abstract [Symbol.iterator](): Generator<[string, T]>

  *keys(): Generator<string> {
    for (const [name] of this) yield name
  }
  *values(): Generator<T> {
    for (const [, value] of this) yield value
  }
  *entries(): Generator<[string, T]> {
    yield* this
  }
  forEach(see: (value: T, name: string, pairs: this) => void, self?: unknown): void {
    for (const [name, value] of this) Reflect.apply(see, self, [value, name, this])
  }
}
