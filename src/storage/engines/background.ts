/**
 * Background jobs: flush, compaction, and reading all rows. In a server they run beside units of work, in small slices,
 * and change what counts only while nothing else runs. Decides when a job runs; the tree does it.
 */
import type { VaultRows } from '../engine.js'
import { copyCounters } from '../lsm/counters.js'
import type { CompactionPlan } from '../lsm/manifest.js'
import { attempt } from '../lsm/settle.js'
import { finish } from '../lsm/sstable/row-writer.js'
import { readLiveRows } from '../lsm/sstable/scan.js'
import type { LsmTree } from '../lsm/tree.js'

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
  /** Paths of tables that a compaction under way reads. */
  const busy = new Set<string>()
  /** How many tables there were when compaction was begun last. */
  let seen = 0
  /** By the wall clock. */
  let failedMs = 0
  let isClosing = false
  const { notice } = tree.options

  return { close, flushIfLarger, hasNewTables, keepFewTables, compactSoon, compactAll, compactOnce, withRows }

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

  function hasNewTables(): boolean {
    return tree.manifest.sstables.length > seen
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
      while (!isClosing && (await compact()));
    }
    compacting ??= untilDone().finally(() => {
      compacting = undefined
      seen = tree.manifest.sstables.length
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

  /** Runs `work` over all rows as they are now, beside units of work. */
  async function withRows<T>(work: (found: VaultRows) => Promise<T>): Promise<T> {
    let release = async () => {}
    try {
      const { sstables, times } = await runExclusive(async () => {
        await tree.flush()
        release = tree.manifest.keepFiles()
        return { sstables: tree.manifest.sstables, times: copyCounters(tree.counters) }
      })
      const count = sstables.reduce((sum, { sstable }) => sum + sstable.meta.rows, 0)
      async function* rows() {
        yield* readLiveRows(sstables)
      }
      return await work({ times, pending: [], count, rows })
    } finally {
      await runExclusive(release)
    }
  }
}
