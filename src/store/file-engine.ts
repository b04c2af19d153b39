/**
 * The embedded engine: units of work one after another over a ledger on disk, committed in groups. Knows who may see
 * what and when a work is answered; the files are the ledger's.
 */
import { CofferError } from '../errors.js'
import type { BackupWriter } from './backup.js'
import { type Change, FRAME_HEAD, MAX_CHANGES } from './change.js'
import type { Files } from './files.js'
import { FRAME_LIMIT, JOURNAL_HEADER, SEAL_BYTES } from './journal.js'
import { isRemoval, type Ledger, type LedgerStatus } from './ledger.js'
import { checkChain } from './log-chain.js'
import { walkMatches } from './lookup.js'
import { createLedger, openLedger } from './opening.js'
import { Overlay } from './overlay.js'
import { type Counters, copyCounters, createReader, nextTime, Stage } from './stage.js'
import type {
  Clock,
  Durability,
  Engine,
  EngineKeys,
  EngineReader,
  EngineWriter,
  LogCheck,
  LogQuery,
  Random,
  Row,
} from './store.js'
import { checkDirectory, checkExposure, type Header, hasHeader, writeHeader } from './vault-file.js'
import type { CheckRow, Verification } from './verify.js'

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
  /** A command folds when it is done and keeps little in memory; a server lives long. */
  role: 'command' | 'server'
}

interface Size {
  bytes: number
  rows: number
}

interface Role {
  cacheBytes: number
  /** The journal is folded when it has more than this … */
  running: Size
  /** … and when the engine closes with more than this. */
  closing: Size
  /** One merge of at most so many bytes is made when the engine closes. */
  closingMerge: number
}

const MEBIBYTE = 1024 * 1024
/** A command answers first and folds when it is done; a server folds little and often, so that no pause is long. */
const ROLES: Record<FileEngineOptions['role'], Role> = {
  command: {
    cacheBytes: 4 * MEBIBYTE,
    running: { bytes: 8 * MEBIBYTE, rows: 16_384 },
    closing: { bytes: MEBIBYTE, rows: 2048 },
    closingMerge: 64 * MEBIBYTE,
  },
  server: {
    cacheBytes: 32 * MEBIBYTE,
    running: { bytes: MEBIBYTE, rows: 2048 },
    closing: { bytes: JOURNAL_HEADER, rows: 0 },
    closingMerge: 0,
  },
}
/** A server's merge lets others go on after this long. */
const SLICE_MS = 5
/** Plain bytes of changes that one frame takes. */
const GROUP_BYTES = FRAME_LIMIT - SEAL_BYTES - FRAME_HEAD
/** A change answered `soon` is synced after at most this. */
const SOON_MS = 25

/** Works whose changes share a frame, and who waits for it. */
interface Group {
  changes: Change[]
  bytes: number
  /** Somebody waits for the sync. */
  isUrgent: boolean
  waiting: { done(): void; fail(error: unknown): void }[]
}

function createGroup(): Group {
  return { changes: [], bytes: 0, isUrgent: false, waiting: [] }
}

type Outcome<T> = { ok: true; value: T } | { ok: false; error: unknown }

export class FileEngine implements Engine {
  readonly #options: FileEngineOptions
  readonly #ledger: Ledger
  readonly #tasks: (() => Promise<void>)[] = []
  #group = createGroup()
  /** Changes that only later writers may see: those of the group, and those written but not synced. */
  #unsynced = new Overlay()
  #counters: Counters
  #running: Promise<void> | undefined
  #closing: Promise<void> | undefined
  #merging: Promise<void> | undefined
  /** While a backup is made the segments that it copies must stay. */
  #isMergingHeld = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: FileEngineOptions, ledger: Ledger) {
    this.#options = options
    this.#ledger = ledger
    this.#counters = copyCounters(ledger.counters)
  }

  read<T>(work: (reader: EngineReader) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#enqueue(async () => {
        const now = nextTime(this.#counters, this.#options.clock)
        const outcome = await settle(() => work(createReader(() => this.#ledger.view(), now)))
        if (outcome.ok) resolve(outcome.value)
        else reject(outcome.error)
      }, reject)
    })
  }

  write<T>(work: (writer: EngineWriter) => Promise<T>, durability: Durability = 'now'): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#enqueue(async () => {
        nextTime(this.#counters, this.#options.clock)
        const stage = new Stage(this.#writerView(), this.#counters, this.#options.keys.chain)
        const outcome = await settle(() => work(stage))
        stage.end()
        const answer = outcome.ok ? () => resolve(outcome.value) : () => reject(outcome.error)
        const waiting = { done: answer, fail: reject }
        if (!outcome.ok || stage.changes.length === 0) this.#answerAfterGroup(waiting)
        else await this.#take(stage, durability, waiting)
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
    await this.#merging
    clearTimeout(this.#timer)
    const { closing, closingMerge } = ROLES[this.#options.role]
    try {
      this.#ledger.sync()
      await this.#foldWhere(closing)
      await this.#attempt('merged', () => this.#mergeOnce(closingMerge))
    } finally {
      this.#ledger.close()
    }
  }

  /** Counts and sizes, of what is safe. */
  status(): Promise<LedgerStatus> {
    return this.#exclusively(async () => this.#ledger.status())
  }

  /** Index blocks opened so far. */
  get blocksOpened(): number {
    return this.#ledger.cache.opened
  }

  verifyLogs(query: LogQuery, isAuthentic: (row: Row) => boolean): Promise<LogCheck> {
    return this.#exclusively(async () => {
      const { counters } = this.#ledger
      const rows = walkMatches(this.#ledger.view(), { ...query, family: 'logs' }, counters.time)
      return checkChain(rows, this.#options.keys.chain, counters.chains.get(query.tenant), isAuthentic)
    })
  }

  /** Moves the journal into segments, whatever its size. */
  fold(): Promise<void> {
    return this.#exclusively(() => this.#ledger.fold())
  }

  /** Folds the journal and merges segments until nothing is due; others may work meanwhile. */
  async compact(): Promise<void> {
    await this.fold()
    await this.#merging
    while (await this.#mergeInTurn());
  }

  /**
   * Looks at every byte that the vault relies on; others wait meanwhile. `check` says what is wrong with a row's seal.
   */
  verify(check: CheckRow, progress: (rows: number) => void = () => undefined): Promise<Verification> {
    return this.#exclusively(async () => {
      const { verifyVault } = await import('./verify.js')
      const steps = verifyVault(this.#ledger.options, check)
      let step = await steps.next()
      for (; !step.done; step = await steps.next()) progress(step.value)
      return step.value
    })
  }

  /**
   * Writes the whole vault, as it is at the end, into one new file; others work meanwhile. Gives its length.
   * @throws CofferError `storage_failed`; then there is no such file.
   */
  async backup(path: string, progress: (bytes: number) => void = () => undefined): Promise<number> {
    await this.#merging
    this.#isMergingHeld = true
    try {
      const { BackupWriter } = await import('./backup.js')
      const writer = new BackupWriter(this.#options, path, this.#options.header)
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
    const copied = new Set<string>()
    let bytes = 0
    const names = await this.#exclusively(async () => this.#ledger.fileNames().segments)
    for (const name of names) {
      for (const length of this.#ledger.copyFile(writer, name)) {
        bytes += length
        progress(bytes)
        await new Promise(setImmediate)
      }
      copied.add(name)
    }
    return this.#exclusively(async () => {
      await this.#ledger.fold()
      const { segments, others } = this.#ledger.fileNames()
      for (const name of [...segments.filter((segment) => !copied.has(segment)), ...others]) {
        for (const length of this.#ledger.copyFile(writer, name)) bytes += length
      }
      progress(bytes)
      return writer.finish()
    })
  }

  /** Puts another `vault.json` in place of the present one, which is refused from then on. */
  replaceHeader(header: Header): Promise<void> {
    const { files, directory, random } = this.#options
    return this.#exclusively(() =>
      this.#ledger.replaceHeader(header, () => writeHeader(files, directory, random, header)),
    )
  }

  /** Runs `work` in turn, after everything before it was committed. */
  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#enqueue(async () => {
        this.#group.isUrgent = true
        const failure = await this.#commit()
        if (failure !== undefined) throw failure
        const outcome = await settle(work)
        if (outcome.ok) resolve(outcome.value)
        else reject(outcome.error)
      }, reject)
    })
  }

  #writerView() {
    const view = this.#ledger.view()
    return { ...view, overlays: [this.#unsynced, ...view.overlays] }
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
    while (this.#tasks.length > 0) {
      await this.#runWaiting()
      if (this.#group.waiting.length === 0) continue
      if (this.#options.role === 'server') {
        await new Promise(setImmediate)
        await this.#runWaiting()
      }
      await this.#commit()
    }
    this.#running = undefined
  }

  /** Only what waits now: those who come meanwhile must not keep the others from their sync. */
  async #runWaiting(): Promise<void> {
    for (const task of this.#tasks.splice(0)) await task()
  }

  /** A work that changed nothing may have been shown, or refused for, what is not safe yet: it is answered with that. */
  #answerAfterGroup(waiting: Group['waiting'][number]): void {
    if (this.#group.isUrgent) this.#group.waiting.push(waiting)
    else waiting.done()
  }

  async #take(stage: Stage, durability: Durability, waiting: Group['waiting'][number]): Promise<void> {
    const isLarge = stage.bytes > GROUP_BYTES || stage.changes.length > MAX_CHANGES
    const isOverfull =
      this.#group.bytes + stage.bytes > GROUP_BYTES ||
      this.#group.changes.length + stage.changes.length > MAX_CHANGES
    if (isLarge || isOverfull) {
      const failure = await this.#commit()
      // The work built on what has just been taken back.
      if (failure !== undefined) return waiting.fail(failure)
    }
    if (isLarge) return this.#store(stage, waiting)
    stage.advance(this.#counters)
    for (const change of stage.changes) {
      this.#unsynced.apply(change)
      this.#group.changes.push(change)
    }
    this.#group.bytes += stage.bytes
    if (durability === 'now' || stage.changes.some(isRemoval)) this.#group.isUrgent = true
    this.#group.waiting.push(waiting)
  }

  async #store(stage: Stage, waiting: Group['waiting'][number]): Promise<void> {
    const counters = copyCounters(this.#counters)
    stage.advance(counters)
    const outcome = await settle(() => this.#ledger.store(stage.overlay, counters))
    this.#unsynced = new Overlay()
    this.#counters = { ...copyCounters(this.#ledger.counters), time: this.#counters.time }
    if (outcome.ok) waiting.done()
    else waiting.fail(outcome.error)
  }

  /** Writes the group as a frame and answers its works. Gives the failure, which all of them were answered with. */
  async #commit(): Promise<unknown> {
    const group = this.#group
    this.#group = createGroup()
    const removals = group.changes.filter(isRemoval)
    const wasInJournal = removals.length > 0 && this.#ledger.holdsAny(removals, group.changes)
    try {
      if (group.changes.length > 0) this.#ledger.append(group.changes, this.#counters, group.isUrgent)
      else if (group.isUrgent) this.#ledger.sync()
      if (group.isUrgent) this.#showAll()
    } catch (error) {
      this.#takeBack()
      for (const { fail } of group.waiting) fail(error)
      return error
    }
    if (removals.length > 0) {
      await this.#attempt('erased', () => this.#ledger.eraseRemoved(removals, wasInJournal))
    }
    for (const { done } of group.waiting) done()
    if (!group.isUrgent && group.changes.length > 0) this.#syncSoon()
    await this.#foldWhere(ROLES[this.#options.role].running)
    return undefined
  }

  /** Nothing waits for a sync any more. */
  #showAll(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#unsynced = new Overlay()
  }

  /** A command syncs when it closes; a server would keep others waiting for ever. */
  #syncSoon(): void {
    if (this.#options.role === 'command' || this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#closing === undefined)
        void this.#attempt('synced', () => this.#exclusively(async () => undefined))
    }, SOON_MS)
  }

  /** Back to what was written: a group that failed is as if it had never been. */
  #takeBack(): void {
    this.#counters = { ...copyCounters(this.#ledger.counters), time: this.#counters.time }
    this.#unsynced = new Overlay()
    for (const change of this.#ledger.pending) this.#unsynced.apply(change)
  }

  async #foldWhere({ bytes, rows }: Size): Promise<void> {
    if (this.#ledger.journalBytes <= bytes && this.#ledger.journalRows <= rows) return
    await this.#attempt('folded', () => this.#ledger.fold())
    this.#unsynced = new Overlay()
    for (const change of this.#ledger.pending) this.#unsynced.apply(change)
    if (this.#options.role === 'server') this.#mergeBeside()
  }

  /** Merges beside the works until nothing is due. One that fails is tried again when the vault is opened anew. */
  #mergeBeside(): void {
    if (this.#closing !== undefined || this.#merging !== undefined || this.#isMergingHeld) return
    const merging = this.#attempt('merged', async () => {
      while (await this.#mergeInTurn());
    })
    this.#merging = merging.then((isDone) => {
      if (isDone) this.#merging = undefined
    })
  }

  /** True when something was merged. Ended early by `close`. */
  async #mergeInTurn(): Promise<boolean> {
    const inputs = await this.#exclusively(async () => this.#ledger.chooseMerge(Number.POSITIVE_INFINITY))
    if (inputs === undefined || this.#isMergingHeld) return false
    const steps = this.#ledger.beginMerge(inputs)
    let sliceMs = performance.now()
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) {
        const { value } = step
        await this.#exclusively(() => this.#ledger.finishMerge(inputs, value))
        return true
      }
      if (performance.now() - sliceMs < SLICE_MS) continue
      await new Promise(setImmediate)
      sliceMs = performance.now()
      if (this.#closing === undefined) continue
      steps.return({ name: undefined, maps: [] })
      return false
    }
  }

  async #mergeOnce(limit: number): Promise<void> {
    const inputs = this.#ledger.chooseMerge(limit)
    if (inputs === undefined) return
    const steps = this.#ledger.beginMerge(inputs)
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done) return this.#ledger.finishMerge(inputs, step.value)
    }
  }

  /** What is done after everything is stored: no caller's answer depends on it, so a failure is only told. */
  async #attempt(what: string, work: () => Promise<void>): Promise<boolean> {
    const outcome = await settle(work)
    if (outcome.ok) return true
    const reason = outcome.error instanceof CofferError ? outcome.error.message : 'The reason is unknown.'
    this.#options.notice(`The vault's files could not be ${what} now; it will be tried again. ${reason}`)
    return false
  }
}

async function settle<T>(work: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await work() }
  } catch (error) {
    return { ok: false, error }
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
  await writeHeader(files, directory, random, header)
  return new FileEngine(options, ledger)
}

/**
 * Opens the vault in `directory`, mending what a crash left. Contract: the caller owns it, and verified `header`.
 * @throws CofferError `vault_missing`, `vault_exposed`, `vault_damaged`, `storage_failed`.
 */
export async function openFileEngine(options: FileEngineOptions): Promise<FileEngine> {
  checkExposure(options.files, options.directory)
  return new FileEngine(options, await openLedger({ ...options, cacheBytes: ROLES[options.role].cacheBytes }))
}
