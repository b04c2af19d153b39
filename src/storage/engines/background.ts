/**
 * Flushes and compactions. A server runs both in small slices between units of work. Their results take effect while no
 * unit of work runs. In this file, "log" means the write-ahead log.
 */
import type { Awaitable, VaultRows } from '../engine.js'
import { type Attempt, attempt } from '../lsm/attempt.js'
import type { Size } from '../lsm/context.js'
import type { CompactionPlan } from '../lsm/manifest.js'
import { liveRowsOf } from '../lsm/sstable/cursors.js'
import { finish } from '../lsm/sstable/write-tables.js'
import type { LsmTree } from '../lsm/tree.js'

/** The length of a slice. After each slice, units of work may run. */
const SLICE_MS = 5
/**
 * With more than `MANY_TABLES` tables, a slice may be longer than `SLICE_MS`: up to this share of the time that the
 * preceding units of work took.
 */
const SHARE = 1 / 8
const MANY_TABLES = 32
/** From this number of tables on, tables are merged before the next unit of work. */
const MAX_TABLES = 64
/** A failed compaction is not retried before this time has passed. */
const RETRY_MS = 30_000

/** With this limit, every log that is not empty is flushed. */
export const ANYTHING: Size = { bytes: 0, rows: 0 }

/** Commits everything, and then runs `work` while nothing else runs. */
type RunExclusive = <T>(work: () => Awaitable<T>) => Promise<T>

export class BackgroundJobs {
  readonly #tree: LsmTree
  readonly #isConcurrent: boolean
  readonly #runExclusive: RunExclusive
  #flushing: Promise<void> | undefined
  #compacting: Promise<void> | undefined
  readonly #busy = new Set<string>()
  /** The kinds of work whose failure was reported. When the work succeeds, its kind is removed from this set. */
  readonly #reported = new Set<Attempt>()
  #seen = 0
  #failedMs = 0
  #isClosing = false

  constructor(tree: LsmTree, isConcurrent: boolean, runExclusive: RunExclusive) {
    this.#tree = tree
    this.#isConcurrent = isConcurrent
    this.#runExclusive = runExclusive
  }

  /** Ends the jobs. An unfinished flush loses nothing, because its rows are still in the log. */
  async close(): Promise<void> {
    this.#isClosing = true
    await this.#flushing
    await this.#compacting?.catch(() => undefined)
  }

  get #tables(): number {
    return this.#tree.manifest.sstables.length
  }

  async #attempt(what: Attempt, work: () => unknown): Promise<boolean> {
    const isDone = await this.#try(what, work)
    if (isDone) this.#reported.delete(what)
    return isDone
  }

  /**
   * Until the work succeeds, only its first failure is reported, because on a full disk the work fails again after each
   * unit of work.
   */
  #try(what: Attempt, work: () => unknown): Promise<boolean> {
    const report = (text: string) => {
      if (!this.#reported.has(what)) this.#tree.context.notice(text)
      this.#reported.add(what)
    }
    return attempt(report, what, work)
  }

  /**
   * Flushes a log that is larger than `size`, or starts its flush in the background. Requires: nothing else in the
   * engine runs during this call.
   */
  async flushIfLarger(size: Size): Promise<void> {
    if (!this.#tree.isLargerThan(size)) return
    const isBeside = this.#isConcurrent && !this.#isClosing && this.#flushing === undefined
    // Flushes the whole log at once. If a flush runs in the background, completes that flush first.
    if (!isBeside) await this.#attempt('flushed', () => this.#tree.flush())
    else if (await this.#try('flushed', () => this.#tree.freeze())) this.#flushing = this.#flushInBackground()
  }

  /**
   * Flushes a log of any size, even after a failed flush, and overwrites removed rows in tables. Requires: nothing else
   * in the engine runs during this call.
   */
  async flushAndErase(): Promise<void> {
    const hasFailed = this.#tree.isFlushing && this.#flushing === undefined
    if (hasFailed && this.#isConcurrent && !this.#isClosing) this.#flushing = this.#flushInBackground()
    else await this.flushIfLarger(ANYTHING)
    if (this.#flushing === undefined) await this.#attempt('erased', () => this.#tree.manifest.cleanUp())
  }

  async #flushInBackground(): Promise<void> {
    await this.#attempt('flushed', async () => {
      if (await this.#inSlices(() => this.#tree.advanceFlush()))
        await this.#runExclusive(() => this.#tree.finishFlush())
    })
    this.#flushing = undefined
    this.#compactSoon()
  }

  /**
   * Merges tables: immediately if there are too many tables, or else in the background. Requires: nothing else in the
   * engine runs during this call.
   */
  async keepFewTables(): Promise<void> {
    if (this.#tables >= MAX_TABLES && this.#mayCompact())
      await this.#attemptCompaction(() => {
        // The loop ends early if no two tables fit together into one table (tables in running compactions do not
        // count).
        while (this.#tables >= MAX_TABLES && this.compactNow());
      })
    else if (this.#tables > this.#seen) this.#compactSoon()
    this.#seen = this.#tables
  }

  /**
   * Does one compaction of at most `limit` bytes. Returns false if no compaction is due. Requires: nothing else in the
   * engine runs during this call.
   */
  compactNow(limit?: number): boolean {
    const plan = this.#tree.manifest.planCompaction(limit, this.#busy)
    if (plan !== undefined) this.#tree.finishCompaction(plan.inputs, finish(plan.steps))
    return plan !== undefined
  }

  #mayCompact(): boolean {
    return Math.abs(Date.now() - this.#failedMs) > RETRY_MS
  }

  async #attemptCompaction(work: () => unknown): Promise<void> {
    if (!(await this.#attempt('compacted', work))) this.#failedMs = Date.now()
  }

  #compactSoon(): void {
    if (this.#isConcurrent && !this.#isClosing && this.#mayCompact())
      void this.#attemptCompaction(() => this.compactAll())
  }

  compactAll(): Promise<void> {
    const untilDone = async () => {
      while (!this.#isClosing && (await this.#compactBeside()));
    }
    this.#compacting ??= untilDone().finally(() => {
      this.#compacting = undefined
      this.#seen = this.#tables
    })
    return this.#compacting
  }

  async #compactBeside(): Promise<boolean> {
    let plan: CompactionPlan | undefined
    await this.#runExclusive(() => {
      plan = this.#tree.manifest.planCompaction(undefined, this.#busy)
      for (const { sstable } of plan?.inputs ?? []) this.#busy.add(sstable.path)
    })
    if (plan === undefined) return false
    const { inputs, steps } = plan
    try {
      let step = steps.next()
      const isDone = await this.#inSlices(() => {
        if (!step.done) step = steps.next()
        return step.done === true
      })
      const result = step.done ? step.value : undefined
      if (isDone && result !== undefined)
        await this.#runExclusive(() => this.#tree.finishCompaction(inputs, result))
      else steps.return({ meta: undefined, maps: [] })
      return isDone
    } finally {
      for (const { sstable } of inputs) this.#busy.delete(sstable.path)
    }
  }

  async #inSlices(step: () => boolean): Promise<boolean> {
    let sliceMs = SLICE_MS
    for (let beganMs = performance.now(); !step(); ) {
      const endedMs = performance.now()
      if (endedMs - beganMs < sliceMs) continue
      await new Promise(setImmediate)
      beganMs = performance.now()
      const isBehind = this.#tables > MANY_TABLES
      sliceMs = isBehind ? Math.max(SLICE_MS, (beganMs - endedMs) * SHARE) : SLICE_MS
      if (this.#isClosing) return false
    }
    return !this.#isClosing
  }

  async withRows<T>(work: (found: VaultRows) => Promise<T>): Promise<T> {
    let release = () => {}
    try {
      const { sstables, times } = await this.#runExclusive(() => {
        this.#tree.flush()
        release = this.#tree.manifest.keepFiles()
        return { sstables: this.#tree.manifest.sstables, times: { ...this.#tree.counters } }
      })
      return await work({ times, pending: [], ...liveRowsOf(sstables) })
    } finally {
      await this.#runExclusive(release)
    }
  }
}
