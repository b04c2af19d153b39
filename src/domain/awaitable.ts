/** A value where it is at hand, else a promise; callers await both. */
export type Awaitable<T> = T | Promise<T>

/** Applies `next` to the value: at once, without a promise, if the value is at hand. */
export function andThen<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return value instanceof Promise ? value.then(next) : next(value)
}
