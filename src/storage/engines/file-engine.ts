/**
 * The embedded engine: runs units of work one after another over an LSM tree on disk, and the operations on the vault as
 * a whole.
 */

import type { Clock, EngineKeys, RandomSource } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import { andThen, isPromise, type MaybePromise } from '../../maybe-promise.js'
import type {
  CheckRow,
  Engine,
  EngineMaintenance,
  EngineReader,
  EngineStatus,
  EngineWriter,
  LogSealer,
  Verification,
} from '../engine.js'
import type { Files } from '../files.js'
import { GroupCommit } from '../lsm/group-commit.js'
import { createLsmTree, openLsmTree } from '../lsm/recovery.js'
import { attempt, settle } from '../lsm/settle.js'
import { createReader, Transaction } from '../lsm/transaction.js'
import type { LsmTree } from '../lsm/tree.js'
import type { Durability } from '../store.js'
import { describeAhead } from '../time.js'
import { beginVault, checkExposure, type Header, writeHeader } from '../vault-file.js'
import { BackgroundJobs, type Size } from './background.js'
import { ANYTHING, ROLES, type RoleName } from './roles.js'
import { TaskQueue } from './task-queue.js'

export interface FileEngineOptions {
  files: Files
  directory: string
  /** Verified by the keyring. */
  header: Header
  /** Of the present format; only for a vault of an older one, which it is put in place of by the first write. */
  upgraded?: Header | undefined
  keys: EngineKeys
  clock: Clock
  random: RandomSource
  /** Takes messages for a person that no program needs, such as that a torn frame was cut off. */
  notice(text: string): void
  /** A command flushes when it closes and caches little; a server flushes in the background. */
  role: RoleName
  /** A larger write-ahead log is flushed; by default what suits the role. */
  flushAt?: Size
  /** In a server, replaced rows are overwritten after at most this, whatever the size of the log. */
  eraseAfterMs?: number
}

/** A change answered `soon` is synced after at most this. */
const SOON_MS = 25
const ERASE_AFTER_MS = 60_000

export class FileEngine implements Engine, EngineMaintenance {
  readonly maintenance: EngineMaintenance = this
  readonly #options: FileEngineOptions
  readonly #tree: LsmTree
  readonly #groupCommit: GroupCommit
  readonly #background: BackgroundJobs
  readonly #flushAt: Size
  readonly #tasks: TaskQueue
  /** What is to be done soon, once. */
  readonly #timers = new Map<string, NodeJS.Timeout>()
  #closing: Promise<void> | undefined

  constructor(options: FileEngineOptions, tree: LsmTree) {
    this.#options = options
    this.#tree = tree
    this.#groupCommit = new GroupCommit(tree, () => Math.floor(options.clock()))
    this.#flushAt = options.flushAt ?? ROLES[options.role].flushAt
    const isConcurrent = options.role === 'server'
    this.#background = new BackgroundJobs({
      tree,
      isConcurrent,
      runExclusive: (work) => this.#runExclusive(work),
    })
    this.#tasks = new TaskQueue({
      gathers: isConcurrent,
      isAwaited: () => this.#groupCommit.isAwaited,
      pass: () => this.#syncSoon(),
      end: async () => {
        await this.#groupCommit.commit()
        await this.#background.flushIfLarger(this.#flushAt)
        this.#syncSoon()
        // Replaced rows are overwritten when the log is flushed, which a small log would wait for too long.
        if (tree.memtable.isErasing) this.#later('flushed', options.eraseAfterMs ?? ERASE_AFTER_MS, ANYTHING)
      },
    })
  }

  read<T>(work: (reader: EngineReader) => MaybePromise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = () => {
        const now = Math.floor(this.#options.clock())
        const view = () => ({ ...this.#tree.view(), held: this.#groupCommit.held })
        return andThen(work(createReader(view, this.#groupCommit.counters, now)), resolve)
      }
      this.#tasks.add({ run, refuse: reject })
    })
  }

  write<T>(work: (writer: EngineWriter) => MaybePromise<T>, durability: Durability = 'now'): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = (): MaybePromise<void> => {
        const { counters } = this.#groupCommit
        const now = Math.floor(this.#options.clock())
        const transaction = new Transaction(this.#groupCommit.view(), counters, now)
        const end = (isKept: boolean, done: () => void): MaybePromise<void> => {
          transaction.end()
          const waiting = { done, fail: reject }
          if (!isKept || !transaction.hasEffect) return this.#groupCommit.answer(waiting)
          if (this.#tree.isOld) return this.#upgrade().then(run)
          const taken = this.#groupCommit.take(transaction, durability, waiting, run)
          // What is too large for a frame has become a table of its own.
          return isPromise(taken) ? taken.then(() => this.#background.compactSoon()) : taken
        }
        const kept = (value: T) => end(true, () => resolve(value))
        const failed = (error: unknown) => end(false, () => reject(error))
        let working: MaybePromise<T>
        try {
          working = work(transaction)
        } catch (error) {
          return failed(error)
        }
        return isPromise(working) ? working.then(kept, failed) : kept(working)
      }
      this.#tasks.add({ run, refuse: reject })
    })
  }

  /** Resolves when everything is durable and, where due, flushed. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#tasks.close()
    await this.#background.close()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    const { closing, closingCompaction } = ROLES[this.#options.role]
    try {
      await this.#groupCommit.commitAll()
      await this.#background.flushIfLarger(closing)
      if (!this.#tree.isOld) await this.#background.compactOnce(closingCompaction)
    } finally {
      this.#tree.close()
    }
  }

  status(): Promise<EngineStatus> {
    return this.#runExclusive(async () => this.#tree.status())
  }

  /** Index blocks opened so far. */
  get blocksOpened(): number {
    return this.#tree.cache.opened
  }

  attach(sealer: LogSealer): void {
    this.#groupCommit.sealer = sealer
  }

  get header(): Header {
    return this.#tree.options.header
  }

  upgrade(): Promise<boolean> {
    return this.#runExclusive(async () => {
      const { isOld } = this.#tree
      if (isOld) await this.#upgrade()
      return isOld
    })
  }

  /** Contract: nothing else runs meanwhile. */
  async #upgrade(): Promise<void> {
    const { sealer } = this.#groupCommit
    const { upgraded = this.#tree.options.header, clock } = this.#options
    if (sealer === undefined) throw new CofferError('internal', 'Nothing can read the logs of this vault.')
    const { upgradeVault } = await import('../lsm/maintenance/upgrade.js')
    await upgradeVault({ tree: this.#tree, sealer, header: upgraded, now: Math.floor(clock()) })
    this.#groupCommit.reset()
  }

  changeCounter(kind: number): number {
    return this.#tree.changeCounters.of(kind)
  }

  /** Flushes the write-ahead log, whatever its size. */
  flush(): Promise<void> {
    return this.#runExclusive(() => this.#tree.flush())
  }

  async compact(): Promise<void> {
    await this.upgrade()
    await this.flush()
    await this.#background.compactAll()
  }

  /** Others wait meanwhile. */
  verify(check: CheckRow, progress: (rows: number) => void = () => undefined): Promise<Verification> {
    return this.#runExclusive(async () => {
      const { verifyVault } = await import('../lsm/maintenance/verify.js')
      const steps = verifyVault(this.#tree.options, check)
      let step = await steps.next()
      for (; !step.done; step = await steps.next()) progress(step.value)
      return step.value
    })
  }

  backup(path: string, progress: (bytes: number) => void = () => undefined): Promise<number> {
    return this.#background.backup(path, this.#tree.options.header, progress)
  }

  /** Replaces `vault.json`; the present one is refused from then on. */
  replaceHeader(header: Header): Promise<void> {
    const { files, directory, random } = this.#options
    const write = () => writeHeader(files, directory, random, header)
    return this.#runExclusive(() => {
      if (this.#tree.isOld) throw new CofferError('conflict', 'Run first: coffer vault upgrade')
      return this.#tree.replaceHeader(header, write)
    })
  }

  /** Runs `work` after everything before it was committed, and nothing meanwhile. */
  #runExclusive<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = async () => {
        await this.#groupCommit.commitAll()
        const settled = await settle(work)
        this.#groupCommit.reset()
        if (settled.ok) resolve(settled.value)
        else reject(settled.error)
      }
      this.#tasks.add({ run, refuse: reject })
    })
  }

  /** A command syncs when it closes; a server would keep others waiting for ever. */
  #syncSoon(): void {
    const { isUnsynced, hasFailed } = this.#groupCommit
    // What the disk has refused is tried again by the next unit of work and on closing.
    if (isUnsynced && !hasFailed) this.#later('synced', SOON_MS, this.#flushAt)
  }

  /**
   * Has a server sync the log, and flush it if it is larger than `size`: who only reads never waits for a commit, after
   * which it would be flushed.
   */
  #later(what: 'synced' | 'flushed', afterMs: number, size: Size): void {
    const { role, notice } = this.#options
    if (role === 'command' || this.#timers.has(what)) return
    const timer = setTimeout(() => {
      this.#timers.delete(what)
      if (this.#closing !== undefined || (what === 'synced' && !this.#groupCommit.isUnsynced)) return
      void attempt(notice, what, () => this.#runExclusive(() => this.#background.flushIfLarger(size)))
    }, afterMs)
    if (what === 'flushed') timer.unref()
    this.#timers.set(what, timer)
  }
}

/**
 * Makes a vault in `directory`, which may exist if it holds none. Contract: the caller has its lock (`lock.ts`).
 * The header is written last: until then there is no vault.
 * @throws CofferError `conflict` when there is a vault, `vault_exposed`, `storage_failed`.
 */
export async function createFileEngine(options: FileEngineOptions): Promise<FileEngine> {
  const { files, directory, header, random, role } = options
  if (files.makeDirectory(directory)) files.syncDirectory(`${directory}/..`)
  beginVault(files, directory)
  const tree = await createLsmTree({ ...options, cacheBytes: ROLES[role].cacheBytes })
  try {
    await writeHeader(files, directory, random, header)
    return new FileEngine(options, tree)
  } catch (error) {
    tree.close()
    throw error
  }
}

/**
 * Opens the vault in `directory`, repairing what a crash left. Contract: the caller has its lock, and verified `header`.
 * @throws CofferError `vault_missing`, `vault_exposed`, `vault_damaged`, `storage_failed`.
 */
export async function openFileEngine(options: FileEngineOptions): Promise<FileEngine> {
  checkExposure(options.files, options.directory)
  const tree = await openLsmTree({ ...options, cacheBytes: ROLES[options.role].cacheBytes })
  const ahead = describeAhead(tree.counters.time, options.clock())
  if (ahead !== undefined) options.notice(ahead)
  return new FileEngine(options, tree)
}
