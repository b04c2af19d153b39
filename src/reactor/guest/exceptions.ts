import { define } from './shield.js'

/** Old code distinguishes exceptions by these legacy codes. Other exceptions have the code 0. */
const CODES: Readonly<Record<string, number>> = {
  IndexSizeError: 1,
  HierarchyRequestError: 3,
  InvalidCharacterError: 5,
  NotFoundError: 8,
  NotSupportedError: 9,
  InvalidStateError: 11,
  SyntaxError: 12,
  InvalidModificationError: 13,
  NamespaceError: 14,
  InvalidAccessError: 15,
  SecurityError: 18,
  NetworkError: 19,
  AbortError: 20,
  URLMismatchError: 21,
  QuotaExceededError: 22,
  TimeoutError: 23,
  DataCloneError: 25,
}

export class DOMException extends Error {
  constructor(message: unknown = '', options: unknown = 'Error') {
    super(`${message}`)
    const { name = 'Error', cause } =
      typeof options === 'object' && options !== null
        ? (options as { name?: unknown; cause?: unknown })
        : { name: options }
    const text = `${name}`
    define(this, 'name', text, false)
    define(this, 'code', CODES[text] ?? 0, false)
    if (cause !== undefined) define(this, 'cause', cause, false)
  }
}
define(DOMException.prototype, Symbol.toStringTag, 'DOMException', false)

/**
 * Call after the lockdown, which replaces `Error` for reactor code. Reactor code must not reach the original `Error`,
 * which is too powerful.
 */
export function extendSharedError(): void {
  Object.setPrototypeOf(DOMException, Error.prototype.constructor)
}
