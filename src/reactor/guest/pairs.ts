/** The iteration that `URLSearchParams` and `Headers` have in common. */
export abstract class Pairs {
  abstract [Symbol.iterator](): Generator<[string, string]>

  *keys(): Generator<string> {
    for (const [name] of this) yield name
  }
  *values(): Generator<string> {
    for (const [, value] of this) yield value
  }
  *entries(): Generator<[string, string]> {
    yield* this
  }
  forEach(see: (value: string, name: string, pairs: this) => void, self?: unknown): void {
    for (const [name, value] of this) Reflect.apply(see, self, [value, name, this])
  }
}
