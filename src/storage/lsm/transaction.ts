/**
 * One unit of work: what it sees, and what it has changed so far. A stage that is thrown away leaves no trace.
 * Knows nothing of files: taking the changes up is the engine's.
 */

import type { Mac } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import { toText } from '../bytes.js'
import type { Draft, EngineReader, EngineWriter, LogDraft, Query, Row, RowId, RowPage } from '../engine.js'
import type { ClockState } from '../store.js'
import { Overlay } from './memtable.js'
import { changeCounterOf, findExpired, findRows, getRow, type View } from './query.js'
import {
  type Change,
  type ChangeKind,
  changeLength,
  checkRow,
  DROP,
  INSERT,
  LOG,
  nameRow,
  REMOVE,
  REPLACE,
  type StoredRow,
} from './row-change.js'
import { judgeClock, passTime, type Times } from './time.js'

/** Where a tenant's chain of log rows stands. */
export interface Chain {
  value: Uint8Array
  count: number
}

/** What the next row gets. */
export interface Counters extends Times {
  seq: number
  logSeq: number
  rev: number
  /** By tenant. */
  chains: Map<number, Chain>
}

export function createCounters(): Counters {
  return { seq: 1, logSeq: 1, rev: 1, time: 0, last: 0, since: 0, until: 0, chains: new Map() }
}

export function copyCounters(counters: Counters): Counters {
  return { ...counters, chains: new Map(counters.chains) }
}

const CHAIN_BYTES = 16
const CHAIN_START = new Uint8Array(CHAIN_BYTES)

/** The chain value of a log row: keyed BLAKE2b, 16 bytes, over the tenant's previous value and the sealed row. */
export function chainNext(mac: Mac, previous: Uint8Array, sealed: Uint8Array): Uint8Array {
  const message = Buffer.allocUnsafe(previous.length + sealed.length)
  message.set(previous)
  message.set(sealed, previous.length)
  return mac(message, CHAIN_BYTES)
}

/** What a tenant's first log row is chained to. */
export function chainStart(): Uint8Array {
  return CHAIN_START
}

/** A reader over what `view` gives at each call. `times` are those of the newest writing, `now` is the clock's. */
export function createReader(view: () => View, times: Times, now: number): EngineReader {
  const clock = judgeClock(times, now)
  return {
    now,
    clock,
    get: (kind, tenant, id, { expired = false } = {}) => getRow(view(), { kind, tenant, id, expired }, now),
    find: (query) => findRows(view(), query, now),
    findExpired: (limit) => findExpired(view(), limit, clock.purgeUntil),
    changeCounter: (kind) => changeCounterOf(view(), kind),
  }
}

export class Stage implements EngineWriter {
  readonly now: number
  clock: ClockState
  /** The work is taken up even though it changes nothing, for the time that it was done at. */
  isNoted = false
  readonly changes: Change[] = []
  /** What the changes take in a frame. */
  bytes = 0
  readonly #below: View
  readonly #counters: Counters
  readonly #chain: Mac
  readonly #chains = new Map<number, Chain | undefined>()
  #overlay: Overlay | undefined
  /** What is below, and the overlay above it. */
  #above: View | undefined
  /** How many of the changes are in the overlay. */
  #laid = 0
  #seq: number
  #logSeq: number
  #times: Times
  #isOver = false

  /**
   * @param below what the work sees; nothing of it changes while the work runs.
   * @param now the wall clock's.
   */
  constructor(below: View, counters: Counters, chain: Mac, now: number) {
    this.#below = below
    this.#counters = counters
    this.#chain = chain
    this.now = now
    this.clock = judgeClock(counters, now)
    this.#times = passTime(counters, now)
    this.#seq = counters.seq
    this.#logSeq = counters.logSeq
  }

  /** The changes, as rows; laid when somebody looks, for most works only write at their end. */
  get overlay(): Overlay {
    this.#overlay ??= new Overlay()
    while (this.#laid < this.changes.length) this.#overlay.apply(this.changes[this.#laid++]!)
    return this.#overlay
  }

  get #view(): View {
    const below = this.#below
    if (this.changes.length === 0) return below
    const { overlay } = this
    this.#above ??= { ...below, overlays: [overlay, ...below.overlays], unsettled: below.unsettled + 1 }
    return this.#above
  }

  get #revision(): number {
    return this.#counters.rev + this.changes.length
  }

  get(
    kind: number,
    tenant: number,
    id: RowId,
    { expired = false }: { expired?: boolean } = {},
  ): Row | undefined {
    return getRow(this.#view, { kind, tenant, id, expired }, this.now)
  }

  find(query: Query): RowPage {
    return findRows(this.#view, query, this.now)
  }

  findExpired(limit: number): Row[] {
    return findExpired(this.#view, limit, this.clock.purgeUntil)
  }

  changeCounter(kind: number): number | undefined {
    return changeCounterOf(this.#view, kind)
  }

  put(draft: Draft): void {
    if (draft.seq !== undefined) {
      this.#replace(draft, draft.seq)
      return
    }
    if (this.#isKnown(toText(draft.id), draft.tenant)) {
      throw new CofferError('internal', 'A row was put as new though there is one of its id.')
    }
    this.#take(INSERT, this.#rowOf(draft, this.#seq++, this.now))
  }

  #replace(draft: Draft, seq: number): void {
    if (draft.created === undefined)
      throw new CofferError('internal', 'A row was replaced without its time of creation.')
    this.#take(REPLACE, this.#rowOf(draft, seq, draft.created))
  }

  /** Spelled out, here and below, for all rows to have one shape: there are many of them. */
  #rowOf(draft: Draft, seq: number, created: number): StoredRow {
    const { kind, tenant, id, modified, expires, keys } = draft
    const rev = this.#revision
    const sealed = draft.seal(rev)
    return { kind, tenant, id, seq, rev, created, modified, expires, keys, sealed, chain: undefined }
  }

  remove(kind: number, tenant: number, id: RowId): void {
    this.#take(REMOVE, nameRow(kind, tenant, id, this.#revision))
  }

  append({ kind, tenant, keys, seal }: LogDraft): void {
    const rev = this.#revision
    const { id, sealed } = seal(rev)
    const last = this.#lastOf(tenant)
    const chain = chainNext(this.#chain, last.value, sealed)
    const seq = this.#logSeq++
    const created = this.now
    this.#take(LOG, { kind, tenant, id, seq, rev, created, modified: 0, expires: 0, keys, sealed, chain })
    this.#chains.set(tenant, { value: chain, count: last.count + 1 })
  }

  dropTenant(tenant: number): void {
    this.#take(DROP, nameRow(0, tenant, new Uint8Array(16), this.#revision))
    this.#chains.set(tenant, undefined)
  }

  noteTime({ isTrusted = false } = {}): void {
    this.isNoted = true
    if (!isTrusted) return
    this.#times = { time: this.now, last: this.now, since: 0, until: 0 }
    this.clock = { isJump: false, purgeUntil: this.now }
  }

  /** From here on the writer that the work was given refuses. */
  end(): void {
    this.#isOver = true
  }

  /** Moves `counters` to where this stage leaves them. Contract: they are those it began with. */
  advance(counters: Counters): void {
    counters.rev += this.changes.length
    counters.seq = this.#seq
    counters.logSeq = this.#logSeq
    Object.assign(counters, this.#times)
    for (const [tenant, chain] of this.#chains) {
      if (chain === undefined) counters.chains.delete(tenant)
      else counters.chains.set(tenant, chain)
    }
  }

  #take(kind: ChangeKind, row: StoredRow): void {
    if (this.#isOver) throw new CofferError('internal', 'A unit of work wrote after it had ended.')
    checkRow(row)
    const change = { kind, row }
    this.changes.push(change)
    this.bytes += changeLength(change)
  }

  #lastOf(tenant: number): Chain {
    const chain = this.#chains.has(tenant) ? this.#chains.get(tenant) : this.#counters.chains.get(tenant)
    return chain ?? { value: chainStart(), count: 0 }
  }

  /** Whether an overlay holds a row of this id; in segments nobody looks, for the caller has. */
  #isKnown(text: string, tenant: number): boolean {
    for (const overlay of this.#view.overlays) {
      const entry = overlay.entry(text)
      if (entry !== undefined) return entry.item !== undefined
      if (overlay.dropped.has(tenant)) return false
    }
    return false
  }
}
