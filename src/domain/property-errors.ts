import { CofferError, type PropertyErrors, validationError } from '../errors.js'

const MANY = 100

export function addError(errors: PropertyErrors, path: string, message: string): void {
  const messages = Object.hasOwn(errors, path) ? errors[path]! : []
  if (!messages.includes(message)) errors[path] = [...messages, message]
}

export function isFull(errors: PropertyErrors): boolean {
  return Object.values(errors).flat().length >= MANY
}

export function refuseErrors(errors: PropertyErrors): void {
  const paths = Object.keys(errors)
  if (paths.length === 0) return
  const [first = ''] = paths
  const more = paths.length === 1 ? '' : ` (and ${paths.length - 1} more)`
  throw validationError(`${first}: ${errors[first]![0]}${more}`, { errors })
}

/**
 * If `work` throws `validation`, adds the errors to `errors` and returns undefined. An error without properties is
 * added at `path`.
 */
export function collect<T>(errors: PropertyErrors, path: string, work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    return addErrorsOf(errors, path, error)
  }
}

export async function collectLater<T>(errors: PropertyErrors, path: string, work: () => Promise<T>) {
  try {
    return await work()
  } catch (error) {
    return addErrorsOf(errors, path, error)
  }
}

/** Like {@link collectLater}, but puts `path` in front of the path of each error. */
export async function collectBelow<T>(errors: PropertyErrors, path: string, work: () => Promise<T>) {
  const own: PropertyErrors = {}
  const done = await collectLater(own, '', work)
  for (const [name, messages] of Object.entries(own))
    for (const message of messages) addError(errors, [path, name].filter(Boolean).join('.'), message)
  return done
}

function addErrorsOf(errors: PropertyErrors, path: string, error: unknown): undefined {
  if (!(error instanceof CofferError) || error.code !== 'validation') throw error
  for (const [at, messages] of Object.entries(error.errors ?? { [path]: [error.message] }))
    for (const message of messages) addError(errors, at, message)
}

/** If `work` throws `validation` without properties, throws the error for the property at `path`. */
export function about<T>(path: string, work: () => T): T {
  const errors: PropertyErrors = {}
  const done = collect(errors, path, work)
  refuseErrors(errors)
  return done as T
}
