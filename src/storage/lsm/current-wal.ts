/** The write-ahead log that a tree appends to now. A flush replaces it by a new one. */
import type { RandomSource } from '../../crypto/ports.js'
import type { WalPosition } from './frames.js'
import { createWal, removeWal, type Wal, type WalContext } from './wal.js'

export class CurrentWal {
  readonly #context: WalContext
  readonly #random: RandomSource
  readonly #notice: (text: string) => void
  #wal: Wal

  constructor(context: WalContext, first: Wal, random: RandomSource, notice: (text: string) => void) {
    this.#context = context
    this.#wal = first
    this.#random = random
    this.#notice = notice
  }

  get wal(): Wal {
    return this.#wal
  }

  get position(): WalPosition {
    return this.#wal.position
  }

  /** Records in the head of the log how far the log was synced. */
  acknowledge(): void {
    try {
      this.#wal.acknowledge()
    } catch {
      // The frames are synced; the head on disk covers fewer of them.
      this.#notice(
        'The head of the write-ahead log could not be written; everything is stored, but check the disk.',
      )
    }
  }

  /** Creates a log that goes on after this one, which stays the present one until `switchTo`. */
  createNext(): Wal {
    return createWal(this.#context, this.#random, this.position.tag)
  }

  switchTo(wal: Wal): void {
    if (wal === this.#wal) return
    this.#wal.close()
    this.#wal = wal
  }

  /** Closes a log that `work` failed to add to `state`; its file stays, because the `state` on disk may name it. */
  async closeOnFailure<T>(wal: Wal, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (wal !== this.#wal) wal.close()
      throw error
    }
  }

  /** Removes a log that no `state` names, unless it is the present one. */
  discard(wal: Wal): void {
    if (wal === this.#wal) return
    wal.close()
    removeWal(this.#context.files, this.#context.directory, wal.id)
  }
}
