/**
 * Collecting every complaint about a request under the path of the property it is about. Knows no property.
 */
import { CofferError, type PropertyErrors } from '../errors.js'

/** Adds one complaint about the property at `path`. */
export function addError(errors: PropertyErrors, path: string, message: string): void {
  const messages = Object.hasOwn(errors, path) ? errors[path]! : []
  errors[path] = [...messages, message]
}

/** @throws CofferError `validation` holding all of `errors`, when there are any. */
export function refuseErrors(errors: PropertyErrors): void {
  const paths = Object.keys(errors)
  if (paths.length === 0) return
  const [first = ''] = paths
  const more = paths.length === 1 ? '' : ` (and ${paths.length - 1} more)`
  throw new CofferError('validation', `${first}: ${errors[first]![0]}${more}`, { errors })
}

/** Runs `work`; a refusal becomes complaints (its own, or one at `path`) and the result undefined. */
export function collect<T>(errors: PropertyErrors, path: string, work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    return takeComplaints(errors, path, error)
  }
}

/** The same for work that may have to wait. */
export async function collectLater<T>(
  errors: PropertyErrors,
  path: string,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    return takeComplaints(errors, path, error)
  }
}

function takeComplaints(errors: PropertyErrors, path: string, error: unknown): undefined {
  if (!(error instanceof CofferError) || error.code !== 'validation') throw error
  const complaints = error.errors ?? { [path]: [error.message] }
  for (const [at, messages] of Object.entries(complaints)) {
    for (const message of messages) addError(errors, at, message)
  }
}

/** Runs `work`; a refusal that names no property is about the one at `path`. */
export function about<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof CofferError) || error.code !== 'validation' || error.errors !== undefined)
      throw error
    throw new CofferError('validation', `${path}: ${error.message}`, {
      cause: error,
      errors: { [path]: [error.message] },
    })
  }
}
