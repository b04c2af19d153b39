/**
 * The engine on disk: runs units of work one by one over an LSM tree. In this file, "log" means the write-ahead log,
 * and "log entries" are the entries of tenants' logs.
 */
import type { Awaitable } from '../../domain/awaitable.js'
import * as port from '../engine.js'
import { attempt } from '../lsm/attempt.js'
import type { LsmOptions, Size } from '../lsm/context.js'
import { GroupCommit } from '../lsm/group-commit.js'
import { Reader } from '../lsm/query.js'
import { createState, openLsmTree } from '../lsm/recovery.js'
import { Transaction } from '../lsm/transaction.js'
import type { LsmTree } from '../lsm/tree.js'
import { Readiness } from '../readiness.js'
import type { Durability } from '../store.js'
import { describeAhead } from '../time.js'
import { beginVault, checkExposure, completeVault, type Header } from '../vault-file.js'
import { ANYTHING, BackgroundJobs } from './background.js'
import { TaskQueue } from './task-queue.js'

export interface FileEngineOptions extends LsmOptions {
  /** A server flushes the log in the background. A command flushes a large log when the command closes the vault. */
  role: 'command' | 'server'
  flushAt?: Size
  /**
   * A server overwrites replaced rows within this time, whatever the size of the log. If the overwriting fails, the
   * server tries again after this time.
   */
  eraseAfterMs?: number
}

const MEBIBYTE = 1024 * 1024
const FLUSH_AT: Size = { bytes: 16 * MEBIBYTE, rows: 32_768, keys: 393_216 }
/** The largest log that a command may leave unflushed. The next command needs 20 ms for each MiB to read the log. */
const LEFT_AT_MOST: Size = { bytes: MEBIBYTE / 16, rows: 48 }
/** When a command ends, the engine does at most one compaction, of at most this many bytes. */
const CLOSING_COMPACTION = 64 * MEBIBYTE
const SYNC_AFTER_MS = { server: 25, command: port.MAX_PENDING_MS / 2 }
const ERASE_AFTER_MS = 60_000

export class FileEngine implements port.Engine, port.EngineMaintenance {
  readonly #options: FileEngineOptions
  readonly #tree: LsmTree
  readonly #flushAt: Size
  readonly #groupCommit: GroupCommit
  readonly #background: BackgroundJobs
  readonly #tasks: TaskQueue
  readonly #readiness = new Readiness(() => this.write((writer) => writer.storeTime()))
  readonly #timers = new Map<string, NodeJS.Timeout>()
  #isSyncing = false
  #closing: Promise<void> | undefined

  constructor(options: FileEngineOptions, tree: LsmTree) {
    const { role, flushAt = FLUSH_AT } = options
    const isConcurrent = role === 'server'
    this.#options = options
    this.#tree = tree
    this.#flushAt = flushAt
    this.#groupCommit = new GroupCommit(
      tree,
      () => this.#now(),
      (error) => this.#readiness.recordWrite(error),
    )
    this.#background = new BackgroundJobs(tree, isConcurrent, (work) => this.#runExclusive(work))
    this.#tasks = new TaskQueue({
      isAwaited: () => this.#groupCommit.isAwaited,
      pass: () => this.#syncSoon(),
      end: () => this.#endRound(),
    })
    // An earlier command may have left rows to overwrite, so the timer must start even if no request comes.
    this.#eraseLater()
  }

  get maintenance(): port.EngineMaintenance {
    return this
  }

  get header(): Header {
    return this.#tree.context.header
  }

  read<T>(work: (reader: port.EngineReader) => Awaitable<T>): Promise<T> {
    return this.#tasks.run(() => {
      const view = { ...this.#tree.view(), pendingEntries: this.#groupCommit.pendingEntries }
      return work(new Reader(view, this.#groupCommit.counters, this.#now()))
    })
  }

  write<T>(work: (writer: port.EngineWriter) => Awaitable<T>, durability: Durability = 'now'): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const groupCommit = this.#groupCommit
      const run = (): Awaitable<void> => {
        const transaction = new Transaction(groupCommit.view(), groupCommit.counters, this.#now())
        const end = (done: () => void, hasEffect: boolean) => {
          transaction.end()
          if (hasEffect) groupCommit.enqueue(transaction, durability, { done, fail: reject })
          else groupCommit.acknowledge({ done, fail: reject })
        }
        const fail = (error: unknown) => end(() => reject(error), false)
        const succeed = (value: T) => end(() => resolve(value), transaction.hasEffect)
        let value: Awaitable<T>
        try {
          value = work(transaction)
        } catch (error) {
          return fail(error)
        }
        return value instanceof Promise ? value.then(succeed, fail) : succeed(value)
      }
      this.#tasks.add({ run, refuse: reject })
    })
  }

  attach(sealer: port.LogSealer): void {
    this.#groupCommit.sealer = sealer
  }

  changeCounter(kind: number): number {
    return this.#tree.changeCounters.of(kind)
  }

  async checkReady(): Promise<void> {
    this.#groupCommit.refuseUnstored()
    await this.#readiness.check()
  }

  status(): Promise<port.EngineStatus> {
    return this.#runExclusive(() => this.#tree.status())
  }

  flush(): Promise<void> {
    return this.#runExclusive(() => this.#tree.flush())
  }

  async compact(): Promise<void> {
    await this.flush()
    await this.#runExclusive(() => this.#tree.repairTables())
    await this.#background.compactAll()
  }

  verify(check: port.CheckRow): Promise<port.Verification> {
    return this.#runExclusive(async () => {
      const { verifyVault } = await import('../lsm/maintenance/verify.js')
      return verifyVault(this.#tree.context, check)
    })
  }

  withRows<T>(work: (found: port.VaultRows) => Promise<T>): Promise<T> {
    return this.#background.withRows(work)
  }

  replaceHeader(header: Header): Promise<void> {
    return this.#runExclusive(() => this.#tree.replaceHeader(header))
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#tasks.close()
    await this.#background.close()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    const isCommand = this.#options.role === 'command'
    try {
      await this.#groupCommit.commitAll()
      // If the log still contains a removed row, `hasRemoved` is true. Then even a small log is flushed.
      const mayLeave = isCommand && !this.#tree.memtable.hasRemoved
      await this.#background.flushIfLarger(mayLeave ? LEFT_AT_MOST : ANYTHING)
      const compact = () => this.#background.compactNow(CLOSING_COMPACTION)
      if (isCommand) await attempt(this.#options.notice, 'compacted', compact)
    } finally {
      this.#tree.close()
    }
  }

  #now(): number {
    return Math.floor(this.#options.clock())
  }

  #runExclusive<T>(work: () => Awaitable<T>): Promise<T> {
    return this.#tasks.run(async () => {
      await this.#groupCommit.commitAll()
      try {
        return await work()
      } finally {
        this.#groupCommit.reset()
      }
    })
  }

  async #endRound(): Promise<void> {
    await this.#groupCommit.commit()
    await this.#background.flushIfLarger(this.#flushAt)
    await this.#background.keepFewTables()
    this.#syncSoon()
    this.#eraseLater()
  }

  /**
   * Starts a timer that flushes even a small log, because a flush overwrites replaced and removed rows. After a
   * failure, the timer starts again.
   */
  #eraseLater(): void {
    if (this.#closing !== undefined || !this.#tree.owesErasure) return
    this.#later('flushed', this.#options.eraseAfterMs ?? ERASE_AFTER_MS, () =>
      this.#runExclusive(() => this.#background.flushAndErase()).finally(() => this.#eraseLater()),
    )
  }

  /**
   * Schedules a sync. A short command ends before the scheduled time, and syncs when it closes the vault. A long
   * command must not postpone the sync to the end, because reads are refused if their log entries stay unsynced for too
   * long.
   */
  #syncSoon(): void {
    const { isUnsynced, failure } = this.#groupCommit
    // After a failed write, no sync is scheduled, because the next unit of work or `close` retries the write.
    if (isUnsynced && failure === undefined && !this.#isSyncing)
      this.#later('synced', SYNC_AFTER_MS[this.#options.role], () => this.#syncBeside())
  }

  /** Syncs the log while units of work run, so that reads do not wait for the disk. */
  async #syncBeside(): Promise<void> {
    if (!this.#groupCommit.isUnsynced) return
    this.#isSyncing = true
    try {
      const failure = await this.#tasks.run(() => this.#groupCommit.commit())
      if (failure !== undefined) throw failure
      const publish = await this.#tree.syncBeside()
      if (this.#closing !== undefined) return
      await this.#tasks.run(() => this.#groupCommit.endSync(publish))
    } finally {
      this.#isSyncing = false
    }
    // A round of logged reads ends without a flush. Therefore a large log is flushed here.
    if (this.#closing === undefined && this.#tree.isLargerThan(this.#flushAt))
      await this.#runExclusive(() => this.#background.flushIfLarger(this.#flushAt))
    this.#syncSoon()
  }

  #later(what: 'synced' | 'flushed', afterMs: number, work: () => Promise<void>): void {
    if (this.#timers.has(what)) return
    const timer = setTimeout(() => {
      this.#timers.delete(what)
      if (this.#closing === undefined) void attempt(this.#options.notice, what, work)
    }, afterMs)
    if (what === 'flushed') timer.unref()
    this.#timers.set(what, timer)
  }
}

/**
 * Creates a vault. The vault exists once `fill` has resolved and the header is written. Requires: the caller has the
 * lock. @throws CofferError `conflict`, `vault_damaged`, `vault_exposed`, `storage_failed`
 */
export async function createFileEngine(
  options: FileEngineOptions,
  fill?: (engine: FileEngine) => Promise<void>,
): Promise<FileEngine> {
  const { files, directory, header } = options
  beginVault(files, directory)
  createState(options)
  const engine = new FileEngine(options, openLsmTree(options))
  try {
    await fill?.(engine)
    completeVault(files, directory, header)
    return engine
  } catch (error) {
    await engine.close().catch(() => undefined)
    throw error
  }
}

/** Requires: the caller has the lock, and has verified `header`. */
export async function openFileEngine(options: FileEngineOptions): Promise<FileEngine> {
  checkExposure(options.files, options.directory)
  const tree = openLsmTree(options)
  const ahead = describeAhead(tree.counters.time, options.clock())
  if (ahead !== undefined) options.notice(ahead)
  return new FileEngine(options, tree)
}
