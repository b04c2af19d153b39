/**
 * What stands between reactor code and functions of Node: nothing of Node's own, no error and no object, comes
 * through. Knows nothing of what the functions do.
 */

/** The current invocation, by identity; what an earlier one started finds that it is over. */
export interface Epoch {
  current: object
}

/** An error of the language's own kinds with the words of `error`: classes of Node's can be changed by whoever gets one. */
export function plainError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('The call failed')
  const { message, name } = error
  const { code } = error as { code?: unknown }
  const plain =
    error instanceof TypeError
      ? new TypeError(message)
      : error instanceof RangeError
        ? new RangeError(message)
        : new Error(message)
  if (plain.name !== name && typeof name === 'string') Object.defineProperty(plain, 'name', { value: name })
  if (typeof code === 'string') Object.defineProperty(plain, 'code', { value: code, enumerable: true })
  return plain
}

/** `work`, failing with plain errors only. */
export function shield<A extends unknown[], R>(work: (...args: A) => R): (...args: A) => R {
  return (...args) => {
    try {
      return work(...args)
    } catch (error) {
      throw plainError(error)
    }
  }
}

/** As {@link shield}, for promises: they never settle once the invocation that asked is over. */
export function shieldAsync<A extends unknown[], R>(
  epoch: Epoch,
  work: (...args: A) => Promise<R>,
): (...args: A) => Promise<R> {
  return (...args) => {
    const asked = epoch.current
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        if (epoch.current === asked) act()
      }
      try {
        work(...args).then(
          (value) => settle(() => resolve(value)),
          (error) => settle(() => reject(plainError(error))),
        )
      } catch (error) {
        reject(plainError(error))
      }
    })
  }
}

/** A function that reports through a callback, silent once the invocation that asked is over. */
export function guardCallback<A extends unknown[]>(
  epoch: Epoch,
  callback: (...args: A) => void,
): (...args: A) => void {
  const asked = epoch.current
  return (...args) => {
    if (epoch.current === asked) callback(...args)
  }
}
