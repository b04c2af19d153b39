/** The embedded engine: units of work, one by one, and operations on the whole vault, over an LSM tree on disk. */
import type { Clock, EngineKeys, RandomSource } from '../../crypto/ports.js'
import type { Awaitable, CheckRow, Engine, EngineMaintenance, EngineWriter, Verification } from '../engine.js'
import type { Files } from '../files.js'
import { GroupCommit } from '../lsm/group-commit.js'
import { createLsmTree, openLsmTree } from '../lsm/recovery.js'
import { attempt, settle } from '../lsm/settle.js'
import { createReader, Transaction } from '../lsm/transaction.js'
import type { LsmTree } from '../lsm/tree.js'
import { Readiness } from '../readiness.js'
import type { Durability } from '../store.js'
import { describeAhead } from '../time.js'
import { beginVault, checkExposure, type Header, writeHeader } from '../vault-file.js'
import { createBackgroundJobs, type Size } from './background.js'
import { ANYTHING, ROLES, type RoleName } from './roles.js'
import { createTaskQueue } from './task-queue.js'

export interface FileEngineOptions {
  files: Files
  directory: string
  /** Verified by the keyring. */
  header: Header
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

export interface FileEngine extends Engine, EngineMaintenance {
  readonly maintenance: EngineMaintenance
  /** Index blocks opened so far. */
  readonly blocksOpened: number
  changeCounter(kind: number): number
  /** Flushes the write-ahead log, whatever its size. */
  flush(): Promise<void>
  verify(check: CheckRow, progress?: (rows: number) => void): Promise<Verification>
}

export function createEngine(options: FileEngineOptions, tree: LsmTree): FileEngine {
  const { clock, files, directory, random, role, flushAt = ROLES[role].flushAt } = options
  const now = () => Math.floor(clock())
  // A frame without changes, which notes the time.
  const readiness = new Readiness(() => engine.write((writer) => writer.noteTime()))
  const groupCommit = new GroupCommit(tree, now, (error) => readiness.noteWrite(error))
  /** What is to be done soon, once. */
  const timers = new Map<string, NodeJS.Timeout>()
  let isSyncing = false
  let closing: Promise<void> | undefined
  const isConcurrent = role === 'server'
  const background = createBackgroundJobs({ tree, isConcurrent, runExclusive })
  const tasks = createTaskQueue({
    gathers: isConcurrent,
    isAwaited: () => groupCommit.isAwaited,
    pass: syncSoon,
    end: async () => {
      await groupCommit.commit()
      await background.flushIfLarger(flushAt)
      await background.keepFewTables()
      syncSoon()
      // Replaced rows are overwritten when the log is flushed, which a small log would wait for too long.
      if (tree.memtable.isErasing)
        later('flushed', options.eraseAfterMs ?? ERASE_AFTER_MS, () =>
          runExclusive(() => background.flushIfLarger(ANYTHING)),
        )
    },
  })

  const engine: FileEngine = {
    get maintenance() {
      return engine
    },
    get blocksOpened() {
      return tree.cache.opened
    },
    get header() {
      return tree.options.header
    },
    read: (work) =>
      new Promise((resolve, reject) => {
        const run = async () => {
          const view = () => ({ ...tree.view(), held: groupCommit.held })
          resolve(await work(createReader(view, groupCommit.counters, now())))
        }
        tasks.add({ run, refuse: reject })
      }),
    write: <T>(work: (writer: EngineWriter) => Awaitable<T>, durability: Durability = 'now') =>
      new Promise<T>((resolve, reject) => {
        const run = async (): Promise<void> => {
          const transaction = new Transaction(groupCommit.view(), groupCommit.counters, now())
          const settled = await settle(() => work(transaction))
          transaction.end()
          const done = () => (settled.ok ? resolve(settled.value) : reject(settled.error))
          const waiting = { done, fail: reject }
          if (!settled.ok || !transaction.hasEffect) return groupCommit.answer(waiting)
          await groupCommit.take(transaction, durability, waiting, run)
          // A transaction that is too large for a frame has become a table of its own.
          if (background.hasNewTables()) await background.keepFewTables()
        }
        tasks.add({ run, refuse: reject })
      }),
    /** Resolves when everything is durable and, where due, flushed. */
    close: () => (closing ??= close()),
    status: () => runExclusive(async () => tree.status()),
    attach: (sealer) => {
      groupCommit.sealer = sealer
    },
    changeCounter: (kind) => tree.changeCounters.of(kind),
    checkReady: async () => {
      groupCommit.refuseUnstored()
      await readiness.check()
    },
    flush: () => runExclusive(() => tree.flush()),
    compact: async () => {
      await engine.flush()
      await background.compactAll()
    },
    /** Others wait meanwhile. */
    verify: (check, progress) =>
      runExclusive(async () => {
        const { verifyVault } = await import('../lsm/maintenance/verify.js')
        const steps = verifyVault(tree.options, check)
        let step = await steps.next()
        for (; !step.done; step = await steps.next()) progress?.(step.value)
        return step.value
      }),
    withRows: (work) => background.withRows(work),
    replaceHeader: (header) =>
      runExclusive(() => tree.replaceHeader(header, () => writeHeader(files, directory, random, header))),
  }
  return engine

  async function close(): Promise<void> {
    await tasks.close()
    await background.close()
    for (const timer of timers.values()) clearTimeout(timer)
    const { closing, closingCompaction } = ROLES[role]
    try {
      await groupCommit.commitAll()
      await background.flushIfLarger(closing)
      await background.compactOnce(closingCompaction)
    } finally {
      tree.close()
    }
  }

  /** Runs `work` between two units of work. */
  function runBetween<T>(work: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      tasks.add({ run: async () => resolve(await work()), refuse: reject })
    })
  }

  /** Runs `work` after everything before it was committed, and nothing meanwhile. */
  function runExclusive<T>(work: () => Promise<T>): Promise<T> {
    return runBetween(async () => {
      await groupCommit.commitAll()
      return work().finally(() => groupCommit.reset())
    })
  }

  /** A command syncs when it closes; a server would keep others waiting for ever. */
  function syncSoon(): void {
    const { isUnsynced, hasFailed } = groupCommit
    // What the disk has refused is tried again by the next unit of work and on closing.
    if (isUnsynced && !hasFailed && !isSyncing) later('synced', SOON_MS, syncBeside)
  }

  /** Syncs the log while units of work go on: who only reads does not wait for the disk. */
  async function syncBeside(): Promise<void> {
    if (!groupCommit.isUnsynced) return
    isSyncing = true
    try {
      const failure = await runBetween(() => groupCommit.commit())
      if (failure !== undefined) throw failure
      const publish = await tree.syncBeside()
      if (closing !== undefined) return
      await runBetween(() => groupCommit.endSync(publish))
    } finally {
      isSyncing = false
    }
    // Who only reads never waits for a commit, after which a log that has grown would be flushed.
    if (closing === undefined && tree.isLargerThan(flushAt))
      await runExclusive(() => background.flushIfLarger(flushAt))
    syncSoon()
  }

  /** Has a server do what is due, once. */
  function later(what: 'synced' | 'flushed', afterMs: number, work: () => Promise<void>): void {
    if (role === 'command' || timers.has(what)) return
    const timer = setTimeout(() => {
      timers.delete(what)
      if (closing === undefined) void attempt(options.notice, what, work)
    }, afterMs)
    if (what === 'flushed') timer.unref()
    timers.set(what, timer)
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
    return createEngine(options, tree)
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
  return createEngine(options, tree)
}
