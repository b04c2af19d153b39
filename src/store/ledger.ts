/**
 * Everything of the vault that is on disk, under one owner: the journal, the segments and the `state` that names
 * them. Knows how changes become safe and how a crash is mended; not who asked for them or who may see them.
 */
import type { Low } from 'lowdb'
import { CofferError } from '../errors.js'
import { decodeId, encodeId, isEqual, toBase64, toText } from './bytes.js'
import { type Change, DROP, encodeFrame, type Frame, INSERT, LOG, REMOVE, REPLACE } from './change.js'
import { type Contents, decodeContents, encodeContents, orderSegments } from './contents.js'
import type { Files } from './files.js'
import { addRows, buryUnder, isEmptied, removeQuietly, writeOverlay } from './fold.js'
import {
  createJournal,
  type Journal,
  type JournalPlace,
  journalPath,
  type Mark,
  openJournal,
  readHead,
} from './journal.js'
import type { View } from './lookup.js'
import { Overlay } from './overlay.js'
import { BlockCache, type SegmentPlace } from './segment.js'
import { LiveSegment } from './segment-search.js'
import { type Counters, copyCounters } from './stage.js'
import type { EngineKeys, Random } from './store.js'
import { type Header, headerText, type State, stateDocument } from './vault-file.js'

/** What a ledger is opened with. */
export interface LedgerOptions {
  files: Files
  directory: string
  /** Its mac was verified. */
  header: Header
  keys: EngineKeys
  random: Random
  /** Told what a person should know and no program needs. */
  notice(text: string): void
  /** Bytes of opened index blocks to keep. */
  cacheBytes: number
}

/** Counts and sizes, for those who ask how the vault is. */
export interface LedgerStatus {
  generation: number
  segments: number
  journalBytes: number
  recordBytes: number
  logBytes: number
  /** Live rows in segments and journal; `expired` ones that were not removed yet count. */
  rows: { records: number; logs: number; dead: number }
}

const NO_TAG = new Uint8Array(16)

export class Ledger {
  readonly options: LedgerOptions
  /** Rows of the journal that are safe. */
  overlay = new Overlay()
  /** Changes that were written but not synced. */
  pending: Change[] = []
  /** As of the last change that was written. */
  counters: Counters
  readonly cache: BlockCache
  readonly #reader: SegmentPlace
  readonly #journals: JournalPlace
  readonly #state: Low<State>
  #contents: Contents
  #records: readonly LiveSegment[] = []
  #logs: readonly LiveSegment[] = []
  #journal: Journal
  #broken: CofferError | undefined

  constructor(options: LedgerOptions, parts: LedgerParts) {
    this.options = options
    this.cache = parts.reader.cache
    this.#reader = parts.reader
    this.#journals = parts.journals
    this.#state = parts.state
    this.#contents = parts.contents
    this.#sort()
    this.#journal = parts.journal
    this.counters = copyCounters(parts.contents.counters)
  }

  get contents(): Contents {
    return this.#contents
  }

  get journalBytes(): number {
    return this.#journal.mark.end
  }

  get journalRows(): number {
    return this.overlay.count('records') + this.overlay.count('logs')
  }

  /** What is safe, and so may be shown. */
  view(): View {
    return { overlays: [this.overlay], records: this.#records, logs: this.#logs }
  }

  /**
   * Writes changes as one frame and, when `isUrgent`, makes it and all before it safe. On failure the journal is as it
   * was before.
   * @throws CofferError `storage_failed`.
   */
  append(changes: readonly Change[], counters: Counters, isUrgent: boolean): void {
    this.#refuseIfBroken()
    const { mark } = this.#journal
    const waiting = this.pending.length
    const before = this.counters
    try {
      this.#journal.append(encodeFrame(changes, counters.time))
      for (const change of changes) this.pending.push(change)
      this.counters = copyCounters(counters)
      if (isUrgent) this.sync()
    } catch (error) {
      this.pending.length = waiting
      this.counters = before
      this.#cutTo(mark, error)
      throw error
    }
  }

  /**
   * Makes everything written so far safe, and shows it. A failed sync is never tried again: what the disk holds is
   * then unknown until the vault is opened anew.
   * @throws CofferError `storage_failed`.
   */
  sync(): void {
    this.#refuseIfBroken()
    if (this.pending.length === 0) return
    try {
      this.#journal.sync()
    } catch (error) {
      this.#break(error)
      throw error
    }
    for (const change of this.pending) this.overlay.apply(change)
    this.pending = []
    this.#acknowledge()
  }

  #acknowledge(): void {
    try {
      this.#journal.acknowledge()
    } catch {
      // The frames themselves are safe; without `head` they are judged by their chain alone.
      this.options.notice(
        "The vault's file `head` could not be written; everything is stored, but check the disk.",
      )
    }
  }

  /** Moves the journal's rows into segments. Nothing is lost or half done, whatever fails. */
  async fold(): Promise<void> {
    this.sync()
    if (this.#journal.mark.frames === 0) return
    await this.#foldOverlay(this.overlay, this.counters)
  }

  /** Stores changes that are too many for a frame: all of them become safe by the `state` that names their segments. */
  async store(changes: readonly Change[], counters: Counters): Promise<void> {
    await this.fold()
    const overlay = new Overlay()
    for (const change of changes) overlay.apply(change)
    await this.#foldOverlay(overlay, counters)
  }

  async #foldOverlay(overlay: Overlay, counters: Counters): Promise<void> {
    this.#refuseIfBroken()
    const { files, directory, random, keys } = this.options
    const old = this.#journal
    const journal = old.mark.frames === 0 ? old : createJournal(this.#journals, random, old.mark.tag)
    let written: LiveSegment[] = []
    let buried: LiveSegment[] = []
    try {
      written = writeOverlay({ files, directory, random, cipher: keys.segment }, this.#reader, overlay)
      buried = this.#contents.segments.map((live) => buryUnder(live, overlay))
    } catch (error) {
      if (journal !== old) this.#discard(journal)
      throw error
    }
    const kept = buried.filter((live) => !isEmptied(live))
    await this.#commit({
      ...this.#contents,
      counters: copyCounters(counters),
      journals: [{ id: journal.id, previous: journal.previous }],
      segments: orderSegments([...kept, ...written]),
    })
    this.counters = copyCounters(counters)
    this.overlay = new Overlay()
    this.#switchTo(journal)
    for (const { segment } of buried.filter(isEmptied)) {
      segment.close()
      removeQuietly(files, segment.path)
    }
    await this.erase()
  }

  #switchTo(journal: Journal): void {
    const old = this.#journal
    if (journal === old) return
    this.#journal = journal
    old.close()
    removeQuietly(this.options.files, journalPath(this.options.directory, old.id))
    this.#acknowledge()
  }

  #discard(journal: Journal): void {
    journal.close()
    removeQuietly(this.options.files, journalPath(this.options.directory, journal.id))
  }

  /** Overwrites what is due in the segments, and notes that it was. */
  async erase(): Promise<void> {
    const due = this.#contents.segments.filter((live) => live.due.length > 0)
    if (due.length === 0) return
    for (const live of due) live.segment.erase(live.due)
    const segments = this.#contents.segments.map((live) =>
      live.due.length === 0
        ? live
        : new LiveSegment(live.segment, live.dead, new Uint32Array(0), live.dropped),
    )
    await this.#commit({ ...this.#contents, segments })
  }

  /**
   * Overwrites the bytes of removed rows wherever they lie, before the removal is answered. Contract: the removals
   * are synced. `wasInJournal` tells that a version of one of them is in the journal, which is then folded away.
   */
  async eraseRemoved(changes: readonly Change[], wasInJournal: boolean): Promise<void> {
    if (wasInJournal) return this.fold()
    for (const live of this.#contents.segments) {
      if (live.segment.name.family === 'logs') continue
      const rows = changes.map(({ row }) => live.segment.find(row.id)).filter((row) => row !== undefined)
      if (rows.length > 0) live.segment.erase(addRows(new Uint32Array(0), rows))
    }
  }

  /** True when a version of one of the removed rows lies in a frame, or is about to with `changes`. */
  holdsAny(removals: readonly Change[], changes: readonly Change[]): boolean {
    const written = new Set<string>()
    for (const { kind, row } of [...this.pending, ...changes]) {
      if (kind === INSERT || kind === REPLACE) written.add(toText(row.id))
    }
    return removals.some(({ row }) => {
      const text = toText(row.id)
      return written.has(text) || this.overlay.entry(text)?.item !== undefined
    })
  }

  async #commit(contents: Contents): Promise<void> {
    const next = { ...contents, generation: this.#contents.generation + 1 }
    this.#state.data = encodeContents(next)
    try {
      await this.#state.write()
    } catch (error) {
      // Whether the disk has the old state or the new is unknown: only opening anew tells.
      this.#break(error)
      throw error
    }
    this.#contents = next
    this.#sort()
  }

  #sort(): void {
    const { segments } = this.#contents
    this.#records = segments.filter(({ segment }) => segment.name.family === 'records')
    this.#logs = segments.filter(({ segment }) => segment.name.family === 'logs')
  }

  /**
   * Replaces `vault.json`: for a moment `state` takes either, so that a crash leaves a vault that opens, and afterwards
   * only the new one. `write` puts the file in place.
   */
  async replaceHeader(header: Header, write: () => Promise<void>): Promise<void> {
    this.#refuseIfBroken()
    const digest = digestHeader(this.options.keys, header)
    await this.#commit({ ...this.#contents, headers: [...this.#contents.headers, digest] })
    await write()
    await this.#commit({ ...this.#contents, headers: [digest] })
  }

  status(): LedgerStatus {
    const { segments, generation } = this.#contents
    const status: LedgerStatus = {
      generation,
      segments: segments.length,
      journalBytes: this.journalBytes,
      recordBytes: 0,
      logBytes: 0,
      rows: { records: this.overlay.live('records').length, logs: this.overlay.live('logs').length, dead: 0 },
    }
    for (const live of segments) {
      const { family, bytes, rows } = live.segment.name
      status[family === 'records' ? 'recordBytes' : 'logBytes'] += bytes
      const dead = countDead(buryUnder(live, this.overlay))
      status.rows[family] += rows - dead
      status.rows.dead += dead
    }
    return status
  }

  close(): void {
    this.#journal.close()
    for (const { segment } of this.#contents.segments) segment.close()
  }

  #cutTo(mark: Mark, cause: unknown): void {
    try {
      this.#journal.cut(mark)
    } catch {
      this.#break(cause)
    }
  }

  #break(cause: unknown): void {
    this.#broken = new CofferError(
      'storage_failed',
      'An earlier write failed, so nothing more is written until the vault is opened anew. Check the disk first.',
      { cause },
    )
  }

  #refuseIfBroken(): void {
    if (this.#broken !== undefined) throw this.#broken
  }
}

function countDead({ segment, dead, dropped }: LiveSegment): number {
  if (dropped.size === 0) return dead.length
  let count = [...dropped].reduce((sum, tenant) => sum + (segment.footer.tenants.get(tenant) ?? 0), 0)
  for (const row of dead) if (!dropped.has(segment.entry(row).tenant)) count++
  return count
}

interface LedgerParts {
  reader: SegmentPlace
  journals: JournalPlace
  state: Low<State>
  contents: Contents
  journal: Journal
}

/** Keyed BLAKE2b-256 of the header, base64; another length than chain values have, hence another function. */
export function digestHeader(keys: EngineKeys, header: Header): string {
  return toBase64(keys.chain(Buffer.from(headerText(header)), 32))
}

function prepare(options: LedgerOptions) {
  const { files, directory, header, keys, random, cacheBytes } = options
  const vault = decodeId(header.vault)
  if (vault === undefined)
    throw new CofferError('vault_damaged', 'The header names no vault. Restore a backup.')
  return {
    reader: { files, directory, cipher: keys.segment, cache: new BlockCache(cacheBytes) },
    journals: { files, directory, vault, journal: keys.journal, head: keys.head },
    state: stateDocument(files, directory, { cipher: keys.state, random, vault }),
  }
}

/** A new vault's files, all but its header, which is written last and by the caller. */
export async function createLedger(options: LedgerOptions): Promise<Ledger> {
  const { random, header, keys } = options
  const prepared = prepare(options)
  const journal = createJournal(prepared.journals, random, NO_TAG)
  const contents: Contents = {
    generation: 1,
    headers: [digestHeader(keys, header)],
    counters: { seq: 1, logSeq: 1, rev: 1, time: 0, chains: new Map() },
    journals: [{ id: journal.id, previous: NO_TAG }],
    segments: [],
  }
  prepared.state.data = encodeContents(contents)
  await prepared.state.write()
  journal.acknowledge()
  return new Ledger(options, { ...prepared, contents, journal })
}

/**
 * Opens what is there, mends what a crash left, sweeps what `state` does not name.
 * @throws CofferError `vault_damaged`, `storage_failed`.
 */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const { files, directory, header, keys } = options
  const prepared = prepare(options)
  await prepared.state.read()
  const contents = decodeContents(prepared.state.data, prepared.reader)
  const digest = digestHeader(keys, header)
  if (!contents.headers.includes(digest)) {
    throw new CofferError(
      'vault_damaged',
      `${directory}/vault.json is not the one this vault had last. Restore it.`,
    )
  }
  checkPresence(files, directory, contents)
  const { journal, frames } = openJournals(options, prepared.journals, contents)
  const ledger = new Ledger(options, { ...prepared, contents, journal })
  for (const frame of frames) replay(ledger, frame)
  sweep(files, directory, contents)
  if (contents.segments.some(({ due }) => due.length > 0)) await ledger.erase()
  return ledger
}

function checkPresence(files: Files, directory: string, { segments }: Contents): void {
  const present = new Set(files.list(`${directory}/segments`))
  for (const { segment } of segments) {
    if (present.has(segment.path.slice(segment.path.lastIndexOf('/') + 1))) continue
    throw new CofferError('vault_damaged', `${segment.path} is missing. Restore it, or restore a backup.`)
  }
}

function openJournals(options: LedgerOptions, place: JournalPlace, contents: Contents) {
  const { notice, files } = options
  const last = contents.journals[contents.journals.length - 1]
  if (last === undefined)
    throw new CofferError('vault_damaged', 'The vault names no journal. Restore a backup.')
  const head = readHead(place)
  const covered = head !== undefined && isEqual(head.journal, last.id) ? head : undefined
  const opened = openJournal(place, last.id, last.previous, covered)
  if (covered === undefined && opened.frames.length > 0) {
    notice("The vault's file `head` is missing or does not fit; the journal was read by its own chain.")
  }
  if (opened.torn > 0) {
    opened.journal.cut(opened.journal.mark)
    opened.journal.sync()
    notice(`A last change that was never confirmed was cut off (${opened.torn} bytes).`)
  }
  if (opened.torn > 0 || covered === undefined) opened.journal.acknowledge()
  sweepJournals(files, options.directory, last.id)
  return opened
}

/** Takes a frame up again. @throws CofferError `vault_damaged` when its numbers do not go on where the last ended. */
function replay(ledger: Ledger, { rev, time, changes }: Frame): void {
  const { counters } = ledger
  if (rev !== counters.rev) {
    throw new CofferError(
      'vault_damaged',
      "The journal does not go on where the vault's state ends. Restore a backup.",
    )
  }
  counters.rev += changes.length
  counters.time = Math.max(counters.time, time)
  for (const change of changes) {
    const { kind, row } = change
    ledger.overlay.apply(change)
    if (kind === INSERT) counters.seq = Math.max(counters.seq, row.seq + 1)
    if (kind === DROP) counters.chains.delete(row.tenant)
    if (kind !== LOG || row.chain === undefined) continue
    counters.logSeq = Math.max(counters.logSeq, row.seq + 1)
    const count = (counters.chains.get(row.tenant)?.count ?? 0) + 1
    counters.chains.set(row.tenant, { value: row.chain, count })
  }
}

/** Removes what a crash left behind: files that no state names. */
function sweep(files: Files, directory: string, { segments }: Contents): void {
  const named = new Set(segments.map(({ segment }) => segment.path))
  for (const name of files.list(`${directory}/segments`)) {
    const path = `${directory}/segments/${name}`
    if (!named.has(path)) removeQuietly(files, path)
  }
  for (const name of files.list(directory)) {
    if (/^(vault\.json|state)\.tmp-/.test(name)) removeQuietly(files, `${directory}/${name}`)
  }
}

function sweepJournals(files: Files, directory: string, kept: Uint8Array): void {
  const current = `journal-${encodeId(kept)}`
  for (const name of files.list(directory)) {
    if (name.startsWith('journal-') && name !== current) removeQuietly(files, `${directory}/${name}`)
  }
}

/** True when the change takes a row away for good. */
export function isRemoval({ kind }: Change): boolean {
  return kind === REMOVE
}
