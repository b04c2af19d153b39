/**
 * Collecting every complaint about a request under the path of the property it is about. Knows no property.
 */
import { CofferError, type PropertyErrors } from '../errors.js'

/** From so many complaints on, what could complain without end looks no further. */
const MANY = 100

/** Adds one complaint about the property at `path`, unless it is there. */
export function addError(errors: PropertyErrors, path: string, message: string): void {
  const messages = Object.hasOwn(errors, path) ? errors[path]! : []
  if (!messages.includes(message)) errors[path] = [...messages, message]
}

/** Whether there are so many complaints that looking for more is no help. */
export function isFull(errors: PropertyErrors): boolean {
  return Object.keys(errors).length >= MANY
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

/** The same for work that knows nothing of `path`, which goes before its own; an empty one is the whole. */
export async function collectBelow<T>(
  errors: PropertyErrors,
  path: string,
  work: () => Promise<T>,
): Promise<T | undefined> {
  const own: PropertyErrors = {}
  const done = await collectLater(own, '', work)
  for (const [name, messages] of Object.entries(own)) {
    const place = [path, name].filter((part) => part !== '').join('.')
    for (const message of messages) addError(errors, place, message)
  }
  return done
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
