/** The result of work that may fail, as a value. */
import { CofferError } from '../../errors.js'

type Settled<T> = { ok: true; value: T } | { ok: false; error: unknown }

export async function settle<T>(work: () => T | Promise<T>): Promise<Settled<T>> {
  try {
    return { ok: true, value: await work() }
  } catch (error) {
    return { ok: false, error }
  }
}

/** Does work that no answer depends on; `notice` receives its failure. Returns whether it was done. */
export async function attempt(notice: (text: string) => void, what: string, work: () => Promise<void>) {
  const settled = await settle(work)
  if (settled.ok) return true
  const reason = settled.error instanceof CofferError ? settled.error.message : 'The reason is unknown.'
  notice(`The vault's files could not be ${what} now; it will be tried again. ${reason}`)
  return false
}
