/**
 * Background jobs: flush, compaction and backup. In a server they run beside units of work, in small slices, and change
 * what counts only while nothing else runs. Decides when a job runs; the tree does it.
 */

import type { BackupWriter } from '../lsm/maintenance/backup.js'
import { attempt } from '../lsm/settle.js'
import { finish } from '../lsm/sstable/row-writer.js'
import type { LsmTree } from '../lsm/tree.js'
import type { Header } from '../vault-file.js'

export interface Size {
  bytes: number
  rows: number
  /** Default: any number. */
  keys?: number
}

/** A job beside units of work lets them run after this long. */
const SLICE_MS = 5
/** While there are more than this many tables: after so much of the time that units took, which in an import are long. */
const SHARE = 1 / 8
const MANY_TABLES = 64

export interface BackgroundJobsOptions {
  tree: LsmTree
  /** Runs work after everything before it was committed, and nothing else meanwhile. */
  runExclusive<T>(work: () => Promise<T>): Promise<T>
  /** Whether a flush runs beside units of work. */
  isConcurrent: boolean
}

export class BackgroundJobs {
  readonly #options: BackgroundJobsOptions
  readonly #tree: LsmTree
  #flushing: Promise<void> | undefined
  #compacting: Promise<void> | undefined
  /** The tables that a backup copies must stay until it is made. */
  #isCompactionPaused = false
  #mayCompactInBackground = true
  #isClosing = false

  constructor(options: BackgroundJobsOptions) {
    this.#options = options
    this.#tree = options.tree
  }

  /** Ends what runs beside units of work; a flush that was begun ends when the vault is opened next. */
  async close(): Promise<void> {
    this.#isClosing = true
    await this.#flushing
    await this.#compacting?.catch(() => undefined)
  }

  /** Flushes a log that has more than `size`, or begins to. Contract: nothing else runs meanwhile. */
  async flushIfLarger(size: Size): Promise<void> {
    if (!this.#tree.isLargerThan(size)) return
    const isConcurrent = this.#options.isConcurrent && !this.#isClosing && this.#flushing === undefined
    // A log that has grown again while the one before is flushed must wait for it.
    if (!isConcurrent) await this.#attempt('flushed', () => this.#tree.flush())
    else if (await this.#attempt('flushed', () => this.#tree.freeze()))
      this.#flushing = this.#flushInBackground()
  }

  async #flushInBackground(): Promise<void> {
    await this.#attempt('flushed', async () => {
      const isDone = await this.#inSlices(() => this.#tree.advanceFlush())
      if (isDone) await this.#options.runExclusive(() => this.#tree.finishFlush())
    })
    this.#flushing = undefined
    this.compactSoon()
  }

  /**
   * Compacts what is due beside units of work, if those can run meanwhile. A compaction that failed is not tried again so
   * before the vault is opened anew.
   */
  compactSoon(): void {
    if (!this.#options.isConcurrent || this.#isClosing || !this.#mayCompactInBackground) return
    void this.#attempt('compacted', () => this.compactAll()).then((isDone) => {
      this.#mayCompactInBackground = isDone
    })
  }

  /** Compacts until nothing is due. @throws CofferError `storage_failed`, `vault_damaged`. */
  compactAll(): Promise<void> {
    const untilDone = async () => {
      while (!this.#isClosing && !this.#isCompactionPaused && (await this.#compact()));
    }
    this.#compacting ??= untilDone().finally(() => {
      this.#compacting = undefined
    })
    return this.#compacting
  }

  /** Does one compaction in slices; false when none was due or the vault closes. */
  async #compact(): Promise<boolean> {
    const { runExclusive } = this.#options
    const plan = await runExclusive(async () => this.#tree.manifest.planCompaction(Number.POSITIVE_INFINITY))
    if (plan === undefined) return false
    const { inputs, steps } = plan
    let step = steps.next()
    const isDone = await this.#inSlices(() => {
      if (!step.done) step = steps.next()
      return step.done === true
    })
    const result = step.done ? step.value : undefined
    if (isDone && result !== undefined) await runExclusive(() => this.#tree.finishCompaction(inputs, result))
    else steps.return({ meta: undefined, maps: [] })
    return isDone
  }

  /** Does one compaction of at most `limit` bytes. Contract: nothing else runs any more. */
  async compactOnce(limit: number): Promise<void> {
    await this.#attempt('compacted', async () => {
      const plan = this.#tree.manifest.planCompaction(limit)
      if (plan !== undefined) await this.#tree.finishCompaction(plan.inputs, finish(plan.steps))
    })
  }

  /** Steps until one says that it was the last; false when the vault closes before. */
  async #inSlices(step: () => boolean): Promise<boolean> {
    let sliceMs = SLICE_MS
    for (let beganMs = performance.now(); !step(); ) {
      const endedMs = performance.now()
      if (endedMs - beganMs < sliceMs) continue
      await new Promise(setImmediate)
      beganMs = performance.now()
      const isBehind = this.#tree.manifest.contents.sstables.length > MANY_TABLES
      sliceMs = isBehind ? Math.max(SLICE_MS, (beganMs - endedMs) * SHARE) : SLICE_MS
      if (this.#isClosing) return false
    }
    return !this.#isClosing
  }

  /**
   * Writes the whole vault, as it is at the end, into one new file. Returns its length in bytes.
   * @throws CofferError `storage_failed`; then there is no such file.
   */
  async backup(path: string, header: Header, progress: (bytes: number) => void): Promise<number> {
    this.#isCompactionPaused = true
    try {
      await this.#compacting
      const backup = await import('../lsm/maintenance/backup.js')
      const writer = backup.createBackupWriter(this.#tree.options, path, header)
      return await this.#backupInto(writer, progress).catch((error: unknown) => {
        writer.abandon()
        throw error
      })
    } finally {
      this.#isCompactionPaused = false
    }
  }

  /** Copies tables beside units of work; then, exclusively, what came meanwhile and the `state` that names it all. */
  async #backupInto(writer: BackupWriter, progress: (bytes: number) => void): Promise<number> {
    const tree = this.#tree
    const { directory } = tree.options
    const copied = new Set<string>()
    let bytes = 0
    for (const name of await this.#options.runExclusive(async () => tree.fileNames().sstables)) {
      for (const length of writer.copy(directory, name)) {
        bytes += length
        progress(bytes)
        await new Promise(setImmediate)
      }
      copied.add(name)
    }
    return this.#options.runExclusive(async () => {
      await tree.flush()
      const { sstables, others } = tree.fileNames()
      for (const name of [...sstables.filter((sstable) => !copied.has(sstable)), ...others])
        for (const length of writer.copy(directory, name)) bytes += length
      progress(bytes)
      return writer.finish()
    })
  }

  #attempt(what: string, work: () => Promise<void>): Promise<boolean> {
    return attempt(this.#tree.options.notice, what, work)
  }
}
