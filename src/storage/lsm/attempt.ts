import { CofferError } from '../../errors.js'

/** What the user is told if it fails. */
const FAILURES = {
  compacted: "The vault's files could not be compacted now",
  erased: 'Deleted data could not be overwritten on the disk now, so it is still there, sealed',
  flushed: "The vault's files could not be flushed now",
  synced: "The vault's files could not be synced now",
} as const

export type Attempt = keyof typeof FAILURES

/** Does work that no answer depends on; `notice` receives its failure. Returns whether it was done. */
export async function attempt(notice: (text: string) => void, what: Attempt, work: () => unknown) {
  try {
    await work()
    return true
  } catch (error) {
    const reason = error instanceof CofferError ? error.message : 'The reason is unknown.'
    notice(`${FAILURES[what]}; it will be tried again. ${reason}`)
    return false
  }
}
