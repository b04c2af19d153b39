/**
 * Functions that return the error of refused work. `refusal` and `refusalOf` throw if the work succeeds, or fails with
 * an error that is not a CofferError.
 */
import { CofferError, type PropertyErrors } from '../../src/errors.js'

export function refusal(work: () => unknown): CofferError {
  let result: unknown
  try {
    result = work()
  } catch (error) {
    if (error instanceof CofferError) return error
    throw error
  }
  throw new Error(`no refusal but ${JSON.stringify(result)}`)
}

/** Does the same as {@link refusal}, but for asynchronous work. */
export async function refusalOf(work: Promise<unknown>): Promise<CofferError> {
  const [done] = await Promise.allSettled([work])
  return refusal(() => {
    if (done.status === 'rejected') throw done.reason
    return done.value
  })
}

/** Returns the errors of each property, or undefined if the work is not refused. */
export function errorsOf(work: () => unknown): PropertyErrors | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return (error as CofferError).errors
  }
}
