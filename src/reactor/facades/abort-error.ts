/** Returns the error that functions of Node throw when a signal aborts them. */
export function abortError({ reason }: AbortSignal): Error {
  const error = new Error('The operation was aborted', { cause: reason })
  Object.defineProperty(error, 'name', { value: 'AbortError', configurable: true, writable: true })
  return Object.assign(error, { code: 'ABORT_ERR' })
}
