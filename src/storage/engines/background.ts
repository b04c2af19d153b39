/**
 * Background jobs: flush, compaction and backup. In a server they run beside units of work, in small slices, and change
 * what counts only while nothing else runs. Decides when a job runs; the tree does it.
 */
import type { BackupWriter } from '../lsm/maintenance/backup.js'
import type { CompactionPlan } from '../lsm/manifest.js'
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
const MANY_TABLES = 32
/** With so many tables those that can be are merged before the next unit of work. */
const MOST_TABLES = 64
/** A compaction that failed is tried again after so long. */
const RETRY_MS = 30_000

export interface BackgroundJobsOptions {
  tree: LsmTree
  /** Runs work after everything before it was committed, and nothing else meanwhile. */
  runExclusive<T>(work: () => Promise<T>): Promise<T>
  /** Whether a flush runs beside units of work. */
  isConcurrent: boolean
}

export function createBackgroundJobs({ tree, runExclusive, isConcurrent }: BackgroundJobsOptions) {
  let flushing: Promise<void> | undefined
  let compacting: Promise<void> | undefined
  /** A backup copies tables. */
  let isCompactionPaused = false
  /** Paths of tables that must stay for a while: a backup copies them, or a compaction under way reads them. */
  const busy = new Set<string>()
  /** How many tables there were when compaction was begun last. */
  let seen = 0
  /** By the wall clock. */
  let failedMs = 0
  let isClosing = false
  const { notice } = tree.options

  return { close, flushIfLarger, keepFewTables, compactSoon, compactAll, compactOnce, backup }

  /** Ends what runs beside units of work; a flush that was begun ends when the vault is opened next. */
  async function close(): Promise<void> {
    isClosing = true
    await flushing
    await compacting?.catch(() => undefined)
  }

  /** Flushes a log that has more than `size`, or begins to. Contract: nothing else runs meanwhile. */
  async function flushIfLarger(size: Size): Promise<void> {
    if (!tree.isLargerThan(size)) return
    const isBeside = isConcurrent && !isClosing && flushing === undefined
    // A log that has grown again while the one before is flushed must wait for it.
    if (!isBeside) await attempt(notice, 'flushed', () => tree.flush())
    else if (await attempt(notice, 'flushed', () => tree.freeze())) flushing = flushInBackground()
  }

  async function flushInBackground(): Promise<void> {
    await attempt(notice, 'flushed', async () => {
      if (await inSlices(() => tree.advanceFlush())) await runExclusive(() => tree.finishFlush())
    })
    flushing = undefined
    compactSoon()
  }

  /** Merges tables: at once if there are too many, else beside units of work. Contract: nothing else runs meanwhile. */
  async function keepFewTables(): Promise<void> {
    const { length } = tree.manifest.sstables
    if (length >= MOST_TABLES && mayCompact()) await attemptCompaction(mergeAtOnce)
    else if (length > seen) compactSoon()
    seen = tree.manifest.sstables.length
  }

  async function mergeAtOnce(): Promise<void> {
    while (tree.manifest.sstables.length >= MOST_TABLES) {
      const plan = tree.manifest.planCompaction(Number.POSITIVE_INFINITY, busy)
      // All others are as large as a table may be.
      if (plan === undefined) return
      await tree.finishCompaction(plan.inputs, finish(plan.steps))
    }
  }

  function mayCompact(): boolean {
    return Math.abs(Date.now() - failedMs) > RETRY_MS
  }

  async function attemptCompaction(work: () => Promise<void>): Promise<void> {
    if (!(await attempt(notice, 'compacted', work))) failedMs = Date.now()
  }

  /** Compacts what is due beside units of work, if those can run meanwhile. */
  function compactSoon(): void {
    if (isConcurrent && !isClosing && mayCompact()) void attemptCompaction(compactAll)
  }

  /** Compacts until nothing is due. @throws CofferError `storage_failed`, `vault_damaged`. */
  function compactAll(): Promise<void> {
    const untilDone = async () => {
      while (!isClosing && !isCompactionPaused && (await compact()));
    }
    compacting ??= untilDone().finally(() => {
      compacting = undefined
    })
    return compacting
  }

  /** Does one compaction in slices; false when none was due or the vault closes. */
  async function compact(): Promise<boolean> {
    const plan = await runExclusive(async () => {
      const found = tree.manifest.planCompaction(Number.POSITIVE_INFINITY, busy)
      for (const { sstable } of found?.inputs ?? []) busy.add(sstable.path)
      return found
    })
    if (plan === undefined) return false
    try {
      return await compactBeside(plan)
    } finally {
      for (const { sstable } of plan.inputs) busy.delete(sstable.path)
    }
  }

  async function compactBeside({ inputs, steps }: CompactionPlan): Promise<boolean> {
    let step = steps.next()
    const isDone = await inSlices(() => {
      if (!step.done) step = steps.next()
      return step.done === true
    })
    const result = step.done ? step.value : undefined
    if (isDone && result !== undefined) await runExclusive(() => tree.finishCompaction(inputs, result))
    else steps.return({ meta: undefined, maps: [] })
    return isDone
  }

  /** Does one compaction of at most `limit` bytes. Contract: nothing else runs any more. */
  async function compactOnce(limit: number): Promise<void> {
    await attempt(notice, 'compacted', async () => {
      const plan = tree.manifest.planCompaction(limit, busy)
      if (plan !== undefined) await tree.finishCompaction(plan.inputs, finish(plan.steps))
    })
  }

  /** Steps until one says that it was the last; false when the vault closes before. */
  async function inSlices(step: () => boolean): Promise<boolean> {
    let sliceMs = SLICE_MS
    for (let beganMs = performance.now(); !step(); ) {
      const endedMs = performance.now()
      if (endedMs - beganMs < sliceMs) continue
      await new Promise(setImmediate)
      beganMs = performance.now()
      const isBehind = tree.manifest.contents.sstables.length > MANY_TABLES
      sliceMs = isBehind ? Math.max(SLICE_MS, (beganMs - endedMs) * SHARE) : SLICE_MS
      if (isClosing) return false
    }
    return !isClosing
  }

  /**
   * Writes the whole vault, as it is at the end, into one new file. Returns its length in bytes.
   * @throws CofferError `storage_failed`; then there is no such file.
   */
  async function backup(path: string, header: Header, progress: (bytes: number) => void): Promise<number> {
    isCompactionPaused = true
    try {
      await compacting
      const backup = await import('../lsm/maintenance/backup.js')
      const writer = backup.createBackupWriter(tree.options, path, header)
      return await backupInto(writer, progress).catch((error: unknown) => {
        writer.abandon()
        throw error
      })
    } finally {
      isCompactionPaused = false
      busy.clear()
    }
  }

  /** Copies tables beside units of work; then, exclusively, what came meanwhile and the `state` that names it all. */
  async function backupInto(writer: BackupWriter, progress: (bytes: number) => void): Promise<number> {
    const { directory } = tree.options
    const copied = new Set<string>()
    let bytes = 0
    const first = await runExclusive(async () => {
      for (const { sstable } of tree.manifest.sstables) busy.add(sstable.path)
      return tree.fileNames().sstables
    })
    for (const name of first) {
      for (const length of writer.copy(directory, name)) {
        bytes += length
        progress(bytes)
        await new Promise(setImmediate)
      }
      copied.add(name)
    }
    return runExclusive(async () => {
      await tree.flush()
      const { sstables, others } = tree.fileNames()
      for (const name of [...sstables.filter((sstable) => !copied.has(sstable)), ...others])
        for (const length of writer.copy(directory, name)) bytes += length
      progress(bytes)
      return writer.finish()
    })
  }
}
