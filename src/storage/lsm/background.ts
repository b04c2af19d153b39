/**
 * What keeps a vault in shape: folding the journal, merging segments, backups. In a server they go on beside the works
 * in small slices, and touch what counts only in turn. Knows when something is due; how it is done is the ledger's.
 */

import type { Header } from '../vault-file.js'
import type { BackupWriter } from './backup.js'
import { attempt } from './settle.js'
import type { LsmTree } from './tree.js'

export interface Size {
  bytes: number
  rows: number
}

/** Work beside others lets them go on after this long. */
const SLICE_MS = 5

export interface BackgroundJobsOptions {
  tree: LsmTree
  /** Runs work after everything before it was committed, and nothing meanwhile. */
  runExclusive<T>(work: () => Promise<T>): Promise<T>
  /** Whether folding goes on beside the works. */
  isConcurrent: boolean
}

export class BackgroundJobs {
  readonly #options: BackgroundJobsOptions
  readonly #tree: LsmTree
  #flushing: Promise<void> | undefined
  #compacting: Promise<void> | undefined
  /** While a backup is made the segments that it copies must stay. */
  #isCompactionPaused = false
  #mayCompactInBackground = true
  #isClosing = false

  constructor(options: BackgroundJobsOptions) {
    this.#options = options
    this.#tree = options.tree
  }

  /** Ends what goes on beside the works; what was begun and not ended is done when the vault is opened next. */
  async close(): Promise<void> {
    this.#isClosing = true
    await this.#flushing
    await this.#compacting?.catch(() => undefined)
  }

  /** In turn: folds a journal that has more than `size`, or begins to. */
  async flushIfLarger(size: Size): Promise<void> {
    if (!this.#tree.isLargerThan(size)) return
    const isConcurrent = this.#options.isConcurrent && !this.#isClosing && this.#flushing === undefined
    // A journal that has grown again while the one before is folded must wait for it.
    if (!isConcurrent) await this.#attempt('folded', () => this.#tree.flush())
    else if (await this.#attempt('folded', () => this.#tree.freeze()))
      this.#flushing = this.#flushInBackground()
  }

  async #flushInBackground(): Promise<void> {
    await this.#attempt('folded', async () => {
      const isDone = await this.#inSlices(() => this.#tree.advanceFlush())
      if (isDone) await this.#options.runExclusive(() => this.#tree.finishFlush())
    })
    this.#flushing = undefined
    if (!this.#isClosing && this.#mayCompactInBackground) this.#compactInBackground()
  }

  /** A merge that failed is not tried again beside the works before the vault is opened anew. */
  #compactInBackground(): void {
    void this.#attempt('merged', () => this.compactAll()).then((isDone) => {
      this.#mayCompactInBackground = isDone
    })
  }

  /** Merges until nothing is due, one at a time. @throws CofferError `storage_failed`, `vault_damaged`. */
  compactAll(): Promise<void> {
    this.#compacting ??= this.#compactUntilDone().finally(() => {
      this.#compacting = undefined
    })
    return this.#compacting
  }

  async #compactUntilDone(): Promise<void> {
    while (!this.#isClosing && !this.#isCompactionPaused && (await this.#compactStep()));
  }

  /** True when something was merged. */
  async #compactStep(): Promise<boolean> {
    const inputs = await this.#options.runExclusive(async () =>
      this.#tree.manifest.chooseCompaction(Number.POSITIVE_INFINITY),
    )
    if (inputs === undefined) return false
    const steps = this.#tree.manifest.beginCompaction(inputs)
    let step = steps.next()
    const isDone = await this.#inSlices(() => {
      if (!step.done) step = steps.next()
      return step.done === true
    })
    if (step.done && isDone)
      await this.#options.runExclusive(async () => this.#finishCompaction(inputs, step))
    else steps.return({ meta: undefined, maps: [] })
    return isDone
  }

  async #finishCompaction(
    inputs: Parameters<LsmTree['finishCompaction']>[0],
    step: IteratorResult<undefined, Parameters<LsmTree['finishCompaction']>[1]>,
  ): Promise<void> {
    if (step.done) await this.#tree.finishCompaction(inputs, step.value)
  }

  /** One merge of at most `limit` bytes, when nothing else runs any more. */
  async compactOnce(limit: number): Promise<void> {
    await this.#attempt('merged', async () => {
      const inputs = this.#tree.manifest.chooseCompaction(limit)
      if (inputs === undefined) return
      const steps = this.#tree.manifest.beginCompaction(inputs)
      for (let step = steps.next(); ; step = steps.next()) {
        if (step.done) return this.#tree.finishCompaction(inputs, step.value)
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
    this.#isCompactionPaused = true
    try {
      await this.#compacting
      const backup = await import('./backup.js')
      const writer = new backup.BackupWriter(this.#tree.options, path, header)
      return await this.#backupInto(writer, progress).catch((error: unknown) => {
        writer.abandon()
        throw error
      })
    } finally {
      this.#isCompactionPaused = false
    }
  }

  /** Segments beside the works; then, in turn, what came meanwhile, and the state that names them all. */
  async #backupInto(writer: BackupWriter, progress: (bytes: number) => void): Promise<number> {
    const tree = this.#tree
    const copied = new Set<string>()
    let bytes = 0
    for (const name of await this.#options.runExclusive(async () => tree.fileNames().sstables)) {
      for (const length of writer.copy(tree.options.directory, name)) {
        bytes += length
        progress(bytes)
        await new Promise(setImmediate)
      }
      copied.add(name)
    }
    return this.#options.runExclusive(async () => {
      await tree.flush()
      const { sstables, others } = tree.fileNames()
      for (const name of [...sstables.filter((sstable) => !copied.has(sstable)), ...others]) {
        for (const length of writer.copy(tree.options.directory, name)) bytes += length
      }
      progress(bytes)
      return writer.finish()
    })
  }

  #attempt(what: string, work: () => Promise<void>): Promise<boolean> {
    return attempt(this.#tree.options.notice, what, work)
  }
}
