import { CofferError } from '../../errors.js'

const NOTICE_STARTS = {
  compacted: "The vault's files could not be compacted now",
  erased: 'Deleted data could not be overwritten now, so it is still on the disk, encrypted',
  flushed: "The vault's files could not be flushed now",
  synced: "The vault's files could not be synced now",
} as const

export type Attempt = keyof typeof NOTICE_STARTS

/**
 * Does work on which no answer depends. If the work fails, calls `notice` and does not throw. Returns whether the work
 * succeeded.
 */
export async function attempt(notice: (text: string) => void, what: Attempt, work: () => unknown) {
  try {
    await work()
    return true
  } catch (error) {
    const reason = error instanceof CofferError ? error.message : 'The reason is unknown.'
    notice(`${NOTICE_STARTS[what]}. Coffer will try again. ${reason}`)
    return false
  }
}
