/** The write-ahead log that a tree appends to now. It changes when the one before is flushed. */
import type { RandomSource } from '../../crypto/ports.js'
import type { WalPosition } from './frames.js'
import { createWal, removeWal, type Wal, type WalContext } from './wal.js'

export type CurrentWal = ReturnType<typeof createCurrentWal>

export function createCurrentWal(
  context: WalContext,
  first: Wal,
  random: RandomSource,
  notice: (text: string) => void,
) {
  let current = first

  /** Says in the log's head how far the log was synced. */
  function acknowledge(): void {
    try {
      current.acknowledge()
    } catch {
      // The frames are synced; the head before this one covers fewer of them.
      notice(
        'The head of the write-ahead log could not be written; everything is stored, but check the disk.',
      )
    }
  }

  return {
    acknowledge,

    get wal(): Wal {
      return current
    },

    get position(): WalPosition {
      return current.position
    },

    /** A new log that goes on after this one, which stays the present one until `switchTo`. */
    createNext: () => createWal(context, random, current.position.tag),

    switchTo(wal: Wal): void {
      if (wal === current) return
      current.close()
      current = wal
    },

    /** Closes a log that `work` failed to add to `state`; its file stays, because the `state` on disk may name it. */
    async closeOnFailure<T>(wal: Wal, work: () => Promise<T>): Promise<T> {
      try {
        return await work()
      } catch (error) {
        if (wal !== current) wal.close()
        throw error
      }
    },

    /** Removes a log that no `state` names, unless it is the present one. */
    discard(wal: Wal): void {
      if (wal === current) return
      wal.close()
      removeWal(context.files, context.directory, wal.id)
    },
  }
}
