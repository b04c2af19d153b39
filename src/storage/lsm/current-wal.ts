/** The write-ahead log that a tree appends to now. It changes when the one before is flushed. */
import type { RandomSource } from '../../crypto/ports.js'
import { removeQuietly } from '../files.js'
import type { WalPosition } from './frames.js'
import { createWal, type Wal, type WalContext, walPath } from './wal.js'

export class CurrentWal {
  readonly #context: WalContext
  readonly #random: RandomSource
  readonly #notice: (text: string) => void
  #wal: Wal

  constructor(context: WalContext, wal: Wal, random: RandomSource, notice: (text: string) => void) {
    this.#context = context
    this.#wal = wal
    this.#random = random
    this.#notice = notice
  }

  get wal(): Wal {
    return this.#wal
  }

  get position(): WalPosition {
    return this.#wal.position
  }

  /** Says in `head` how far the log was synced. */
  acknowledge(): void {
    try {
      this.#wal.acknowledge()
    } catch {
      // The frames are synced; without `head`, opening judges them by their chain alone.
      this.#notice("The vault's file `head` could not be written; everything is stored, but check the disk.")
    }
  }

  /** A new log that goes on after this one, which stays the present one until {@link switchTo}. */
  createNext(): Wal {
    return createWal(this.#context, this.#random, this.position.tag)
  }

  switchTo(wal: Wal): void {
    if (wal === this.#wal) return
    this.#wal.close()
    this.#wal = wal
    this.acknowledge()
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
    removeQuietly(this.#context.files, walPath(this.#context.directory, wal.id))
  }
}
