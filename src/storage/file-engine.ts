/**
 * The embedded engine: units of work one after another over a ledger on disk. Knows the order of works and what an
 * owner may ask of the vault as a whole; commits, upkeep and files have their own modules.
 */

import type { Clock, EngineKeys, Random } from '../crypto/ports.js'
import { CofferError } from '../errors.js'
import type {
  CheckRow,
  Engine,
  EngineMaintenance,
  EngineReader,
  EngineStatus,
  EngineWriter,
  LogQuery,
  MaybePromise,
  Row,
  Verification,
} from './engine.js'
import type { Files } from './files.js'
import { type Size, Upkeep } from './lsm/background.js'
import { Commits } from './lsm/group-commit.js'
import { checkChain } from './lsm/log-chain.js'
import { attempt, settle } from './lsm/outcome.js'
import { Pace } from './lsm/pace.js'
import { walkMatches } from './lsm/query.js'
import { createLedger, openLedger } from './lsm/recovery.js'
import { ANYTHING, ROLES, type RoleName } from './lsm/roles.js'
import { describeAhead } from './lsm/time.js'
import { createReader, Stage } from './lsm/transaction.js'
import type { Ledger } from './lsm/tree.js'
import type { Durability, LogCheck } from './store.js'
import { checkDirectory, checkExposure, type Header, hasHeader, writeHeader } from './vault-file.js'

export interface FileEngineOptions {
  files: Files
  directory: string
  /** Verified by the keyring. */
  header: Header
  keys: EngineKeys
  clock: Clock
  random: Random
  /** Told what a person should know and no program needs, such as a torn frame that was cut off. */
  notice(text: string): void
  /** A command folds when it is done and keeps little in memory; a server folds beside its works. */
  role: RoleName
  /** The journal is folded when it has more than this; by default what suits the role. */
  foldAt?: Size
  /** In a server, what was replaced is overwritten after at most this, whatever the size of the journal. */
  eraseAfterMs?: number
}

/** A change answered `soon` is synced after at most this. */
const SOON_MS = 25
const ERASE_AFTER_MS = 60_000

export class FileEngine implements Engine, EngineMaintenance {
  readonly maintenance: EngineMaintenance = this
  readonly #options: FileEngineOptions
  readonly #ledger: Ledger
  readonly #commits: Commits
  readonly #upkeep: Upkeep
  readonly #foldAt: Size
  readonly #tasks: (() => Promise<void>)[] = []
  readonly #pace = new Pace()
  #running: Promise<void> | undefined
  #closing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #eraser: NodeJS.Timeout | undefined

  constructor(options: FileEngineOptions, ledger: Ledger) {
    this.#options = options
    this.#ledger = ledger
    this.#commits = new Commits(ledger)
    this.#foldAt = options.foldAt ?? ROLES[options.role].foldAt
    const isBeside = options.role === 'server'
    this.#upkeep = new Upkeep({ ledger, isBeside, inTurn: (work) => this.#inTurn(work) })
  }

  read<T>(work: (reader: EngineReader) => MaybePromise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#enqueue(async () => {
        const now = Math.floor(this.#options.clock())
        const reader = createReader(() => this.#ledger.view(), this.#commits.counters, now)
        const outcome = await settle(() => work(reader))
        if (outcome.ok) resolve(outcome.value)
        else reject(outcome.error)
      }, reject)
    })
  }

  write<T>(work: (writer: EngineWriter) => MaybePromise<T>, durability: Durability = 'now'): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#enqueue(async () => {
        const { counters } = this.#commits
        const now = Math.floor(this.#options.clock())
        const stage = new Stage(this.#commits.view(), counters, this.#options.keys.chain, now)
        const outcome = await settle(() => work(stage))
        stage.end()
        const done = outcome.ok ? () => resolve(outcome.value) : () => reject(outcome.error)
        const waiting = { done, fail: reject }
        const isTaken = outcome.ok && (stage.changes.length > 0 || stage.isNoted)
        if (isTaken) await this.#commits.take(stage, durability, waiting)
        else this.#commits.answer(waiting)
      }, reject)
    })
  }

  /** Resolves when everything is safe and, where due, folded. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#running
    await this.#upkeep.close()
    clearTimeout(this.#timer)
    clearTimeout(this.#eraser)
    const { closing, closingMerge } = ROLES[this.#options.role]
    try {
      this.#ledger.sync()
      await this.#upkeep.foldWhere(closing)
      await this.#upkeep.mergeOnce(closingMerge)
    } finally {
      this.#ledger.close()
    }
  }

  status(): Promise<EngineStatus> {
    return this.#inTurn(async () => this.#ledger.status())
  }

  /** Index blocks opened so far. */
  get blocksOpened(): number {
    return this.#ledger.cache.opened
  }

  verifyLogs(query: LogQuery, isAuthentic: (row: Row) => boolean): Promise<LogCheck> {
    return this.#inTurn(async () => {
      const { counters } = this.#ledger
      const rows = walkMatches(this.#ledger.view(), { ...query, family: 'logs' }, counters.time)
      return checkChain(rows, this.#options.keys.chain, counters.chains.get(query.tenant), isAuthentic)
    })
  }

  changeCounter(kind: number): number {
    return this.#ledger.stamps.of(kind)
  }

  /** Moves the journal into segments, whatever its size. */
  fold(): Promise<void> {
    return this.#inTurn(() => this.#ledger.fold())
  }

  async compact(): Promise<void> {
    await this.fold()
    await this.#upkeep.mergeAll()
  }

  /** Others wait meanwhile. */
  verify(check: CheckRow, progress: (rows: number) => void = () => undefined): Promise<Verification> {
    return this.#inTurn(async () => {
      const { verifyVault } = await import('./lsm/verify.js')
      const steps = verifyVault(this.#ledger.options, check)
      let step = await steps.next()
      for (; !step.done; step = await steps.next()) progress(step.value)
      return step.value
    })
  }

  backup(path: string, progress: (bytes: number) => void = () => undefined): Promise<number> {
    return this.#upkeep.backup(path, this.#ledger.options.header, progress)
  }

  /** Puts another `vault.json` in place of the present one, which is refused from then on. */
  replaceHeader(header: Header): Promise<void> {
    const { files, directory, random } = this.#options
    const write = () => writeHeader(files, directory, random, header)
    return this.#inTurn(() => this.#ledger.replaceHeader(header, write))
  }

  /** Runs `work` after everything before it was committed, and nothing meanwhile. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#enqueue(async () => {
        await this.#commits.commitAll()
        const outcome = await settle(work)
        this.#commits.takeUp()
        if (outcome.ok) resolve(outcome.value)
        else reject(outcome.error)
      }, reject)
    })
  }

  #enqueue(task: () => Promise<void>, refuse: (error: unknown) => void): void {
    if (this.#closing !== undefined) {
      refuse(new CofferError('internal', 'The vault is closed already.'))
      return
    }
    this.#tasks.push(() => task().catch(refuse))
    this.#running ??= this.#run()
  }

  /** Runs what waits, then commits the group; a server first lets everything join that comes in the same turn. */
  async #run(): Promise<void> {
    await Promise.resolve()
    this.#pace.begin()
    while (this.#tasks.length > 0) {
      await this.#runWaiting()
      if (!this.#commits.isAwaited) {
        if (this.#pace.isOver) await this.#pace.rest()
        continue
      }
      if (this.#options.role === 'server') {
        await this.#pace.rest()
        await this.#runWaiting()
      }
      await this.#commits.commit()
      await this.#upkeep.foldWhere(this.#foldAt)
      this.#syncSoon()
      this.#eraseLater()
      this.#pace.begin()
    }
    this.#running = undefined
  }

  /**
   * Only what waits now: those who come meanwhile must not keep the others from their sync. And not for longer than a
   * slice: whoever is answered together is answered in one go.
   */
  async #runWaiting(): Promise<void> {
    for (let left = this.#tasks.length; left > 0; left--) {
      await this.#tasks.shift()!()
      if (this.#pace.isOver) return
    }
  }

  /** A command syncs when it closes; a server would keep others waiting for ever. */
  #syncSoon(): void {
    if (this.#options.role === 'command' || this.#timer !== undefined || !this.#commits.isUnsynced) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#closing !== undefined || !this.#commits.isUnsynced) return
      void attempt(this.#options.notice, 'synced', () => this.#inTurn(async () => undefined))
    }, SOON_MS)
  }

  /** Older versions are overwritten once the newer ones are in a segment; a small journal would wait for long. */
  #eraseLater(): void {
    const { role, notice, eraseAfterMs = ERASE_AFTER_MS } = this.#options
    if (role === 'command' || this.#eraser !== undefined || this.#ledger.overlay.covered.length === 0) return
    this.#eraser = setTimeout(() => {
      this.#eraser = undefined
      if (this.#closing !== undefined) return
      void attempt(notice, 'folded', () => this.#inTurn(() => this.#upkeep.foldWhere(ANYTHING)))
    }, eraseAfterMs)
    this.#eraser.unref()
  }
}

/**
 * Makes a vault in `directory`, which may exist if it holds none. Contract: the caller owns it (see `ownership`).
 * The header is written last: until then there is no vault.
 * @throws CofferError `conflict` when there is a vault, `vault_exposed`, `storage_failed`.
 */
export async function createFileEngine(options: FileEngineOptions): Promise<FileEngine> {
  const { files, directory, header, random, role } = options
  if (files.makeDirectory(directory)) files.syncDirectory(`${directory}/..`)
  if (hasHeader(files, directory)) {
    throw new CofferError('conflict', `There is a vault in ${directory} already. Choose another directory.`)
  }
  checkDirectory(files, directory)
  files.makeDirectory(`${directory}/segments`)
  const ledger = await createLedger({ ...options, cacheBytes: ROLES[role].cacheBytes })
  try {
    await writeHeader(files, directory, random, header)
    return new FileEngine(options, ledger)
  } catch (error) {
    ledger.close()
    throw error
  }
}

/**
 * Opens the vault in `directory`, mending what a crash left. Contract: the caller owns it, and verified `header`.
 * @throws CofferError `vault_missing`, `vault_exposed`, `vault_damaged`, `storage_failed`.
 */
export async function openFileEngine(options: FileEngineOptions): Promise<FileEngine> {
  checkExposure(options.files, options.directory)
  const ledger = await openLedger({ ...options, cacheBytes: ROLES[options.role].cacheBytes })
  const ahead = describeAhead(ledger.counters.time, options.clock())
  if (ahead !== undefined) options.notice(ahead)
  return new FileEngine(options, ledger)
}
