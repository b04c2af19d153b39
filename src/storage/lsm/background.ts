/**
 * What keeps a vault in shape: folding the journal, merging segments, backups. In a server they go on beside the works
 * in small slices, and touch what counts only in turn. Knows when something is due; how it is done is the ledger's.
 */

import type { Header } from '../vault-file.js'
import type { BackupWriter } from './backup.js'
import { attempt } from './outcome.js'
import type { Ledger } from './tree.js'

export interface Size {
  bytes: number
  rows: number
}

/** Work beside others lets them go on after this long. */
const SLICE_MS = 5

export interface UpkeepOptions {
  ledger: Ledger
  /** Runs work after everything before it was committed, and nothing meanwhile. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** Whether folding goes on beside the works. */
  isBeside: boolean
}

export class Upkeep {
  readonly #options: UpkeepOptions
  readonly #ledger: Ledger
  #folding: Promise<void> | undefined
  #merging: Promise<void> | undefined
  /** While a backup is made the segments that it copies must stay. */
  #isMergingHeld = false
  #mayMergeBeside = true
  #isClosing = false

  constructor(options: UpkeepOptions) {
    this.#options = options
    this.#ledger = options.ledger
  }

  /** Ends what goes on beside the works; what was begun and not ended is done when the vault is opened next. */
  async close(): Promise<void> {
    this.#isClosing = true
    await this.#folding
    await this.#merging?.catch(() => undefined)
  }

  /** In turn: folds a journal that has more than `size`, or begins to. */
  async foldWhere(size: Size): Promise<void> {
    if (!this.#ledger.isLargerThan(size)) return
    const isBeside = this.#options.isBeside && !this.#isClosing && this.#folding === undefined
    // A journal that has grown again while the one before is folded must wait for it.
    if (!isBeside) await this.#attempt('folded', () => this.#ledger.fold())
    else if (await this.#attempt('folded', () => this.#ledger.freeze())) this.#folding = this.#foldBeside()
  }

  async #foldBeside(): Promise<void> {
    await this.#attempt('folded', async () => {
      const isDone = await this.#inSlices(() => this.#ledger.advanceFold())
      if (isDone) await this.#options.inTurn(() => this.#ledger.finishFold())
    })
    this.#folding = undefined
    if (!this.#isClosing && this.#mayMergeBeside) this.#mergeBeside()
  }

  /** A merge that failed is not tried again beside the works before the vault is opened anew. */
  #mergeBeside(): void {
    void this.#attempt('merged', () => this.mergeAll()).then((isDone) => {
      this.#mayMergeBeside = isDone
    })
  }

  /** Merges until nothing is due, one at a time. @throws CofferError `storage_failed`, `vault_damaged`. */
  mergeAll(): Promise<void> {
    this.#merging ??= this.#mergeUntilDone().finally(() => {
      this.#merging = undefined
    })
    return this.#merging
  }

  async #mergeUntilDone(): Promise<void> {
    while (!this.#isClosing && !this.#isMergingHeld && (await this.#merge()));
  }

  /** True when something was merged. */
  async #merge(): Promise<boolean> {
    const inputs = await this.#options.inTurn(async () =>
      this.#ledger.shelf.chooseMerge(Number.POSITIVE_INFINITY),
    )
    if (inputs === undefined) return false
    const steps = this.#ledger.shelf.beginMerge(inputs)
    let step = steps.next()
    const isDone = await this.#inSlices(() => {
      if (!step.done) step = steps.next()
      return step.done === true
    })
    if (step.done && isDone) await this.#options.inTurn(async () => this.#finishMerge(inputs, step))
    else steps.return({ name: undefined, maps: [] })
    return isDone
  }

  async #finishMerge(
    inputs: Parameters<Ledger['finishMerge']>[0],
    step: IteratorResult<undefined, Parameters<Ledger['finishMerge']>[1]>,
  ): Promise<void> {
    if (step.done) await this.#ledger.finishMerge(inputs, step.value)
  }

  /** One merge of at most `limit` bytes, when nothing else runs any more. */
  async mergeOnce(limit: number): Promise<void> {
    await this.#attempt('merged', async () => {
      const inputs = this.#ledger.shelf.chooseMerge(limit)
      if (inputs === undefined) return
      const steps = this.#ledger.shelf.beginMerge(inputs)
      for (let step = steps.next(); ; step = steps.next()) {
        if (step.done) return this.#ledger.finishMerge(inputs, step.value)
      }
    })
  }

  /** Steps until one says that it was the last; false when the vault closes before. */
  async #inSlices(step: () => boolean): Promise<boolean> {
    for (let beganMs = performance.now(); !step(); ) {
      if (performance.now() - beganMs < SLICE_MS) continue
      await new Promise(setImmediate)
      beganMs = performance.now()
      if (this.#isClosing) return false
    }
    return !this.#isClosing
  }

  /**
   * Writes the whole vault, as it is at the end, into one new file. Gives its length.
   * @throws CofferError `storage_failed`; then there is no such file.
   */
  async backup(path: string, header: Header, progress: (bytes: number) => void): Promise<number> {
    this.#isMergingHeld = true
    try {
      await this.#merging
      const backup = await import('./backup.js')
      const writer = new backup.BackupWriter(this.#ledger.options, path, header)
      return await this.#backupInto(writer, progress).catch((error: unknown) => {
        writer.abandon()
        throw error
      })
    } finally {
      this.#isMergingHeld = false
    }
  }

  /** Segments beside the works; then, in turn, what came meanwhile, and the state that names them all. */
  async #backupInto(writer: BackupWriter, progress: (bytes: number) => void): Promise<number> {
    const ledger = this.#ledger
    const copied = new Set<string>()
    let bytes = 0
    for (const name of await this.#options.inTurn(async () => ledger.fileNames().segments)) {
      for (const length of writer.copy(ledger.options.directory, name)) {
        bytes += length
        progress(bytes)
        await new Promise(setImmediate)
      }
      copied.add(name)
    }
    return this.#options.inTurn(async () => {
      await ledger.fold()
      const { segments, others } = ledger.fileNames()
      for (const name of [...segments.filter((segment) => !copied.has(segment)), ...others]) {
        for (const length of writer.copy(ledger.options.directory, name)) bytes += length
      }
      progress(bytes)
      return writer.finish()
    })
  }

  #attempt(what: string, work: () => Promise<void>): Promise<boolean> {
    return attempt(this.#ledger.options.notice, what, work)
  }
}
