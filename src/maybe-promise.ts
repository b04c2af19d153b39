/** Values that an engine may have at once, or has to wait for. */

/**
 * The value where an engine has it at once, a promise where it has to wait for it. Callers check with
 * {@link isPromise}, because `await` costs a microtask for a value too.
 */
export type MaybePromise<T> = T | Promise<T>

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return value instanceof Promise
}

/** What `next` makes of the value, at once where the value is there at once. */
export function andThen<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return isPromise(value) ? value.then(next) : next(value)
}
