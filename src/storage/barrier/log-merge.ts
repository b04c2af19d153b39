/**
 * A page of a log that has several sources, as chains and what is pending: the newest record of all comes first, and those
 * of each source in its order. A block is opened only if nothing else tells how many of its records match, or if records of
 * it may be on the page.
 */
import type { LogBlockRecord } from '../../domain/records/log-record.js'
import type { Awaitable } from '../engine.js'
import { type LogFilter, type LogPage, matchesIn, recordAt } from './log-block.js'

/** Records of one source that follow each other. */
export interface Piece {
  /** The times of its earliest and its latest record, ms. */
  readonly from: number
  readonly to: number
  /** How many of its records match, if that is known. */
  readonly matching: number | undefined
  load(): Awaitable<LogBlockRecord>
}

export interface Source {
  /** The newest first. */
  readonly pieces: AsyncGenerator<Piece>
  /** How many of all its records match, if that is known. */
  readonly total?: number
}

/** A source, and how far it was read. */
class Stream {
  readonly #source: Source
  readonly #filter: LogFilter
  #piece: Piece | undefined
  #block: LogBlockRecord | undefined
  /** The numbers of an opened piece's matching records that are left, the newest last. */
  #left: number[] = []
  /** No later record has a later time: a clock that went back does not change the order within a source. */
  #low = Number.POSITIVE_INFINITY
  /** How many matching records were passed or taken. */
  #seen = 0

  constructor(source: Source, filter: LogFilter) {
    this.#source = source
    this.#filter = filter
  }

  get isOver(): boolean {
    return this.#piece === undefined
  }

  get isOpen(): boolean {
    return this.#block !== undefined
  }

  /** How many records of the piece match and are left, if that is known. */
  get count(): number | undefined {
    return this.#block === undefined ? this.#piece!.matching : this.#left.length
  }

  get from(): number {
    return Math.min(this.#low, this.#piece!.from)
  }

  /** The time of the newest record that is left, or a later one. */
  get newest(): number {
    if (this.#block === undefined) return Math.min(this.#low, this.#piece!.to)
    const at = this.#left.at(-1)
    return at === undefined ? this.from : Math.min(this.#low, this.#block.items[at]![0])
  }

  async open(): Promise<void> {
    this.#block = await this.#piece!.load()
    this.#left = matchesIn(this.#block, this.#filter)
  }

  /** Goes to the next piece. */
  async leave(): Promise<void> {
    this.#seen += this.count ?? 0
    this.#low = this.from
    await this.advance()
  }

  async advance(): Promise<void> {
    const { value, done } = await this.#source.pieces.next()
    this.#piece = done ? undefined : value
    this.#block = undefined
    this.#left = []
  }

  /** Contract: it is open, and has a record left. */
  take() {
    this.#low = this.newest
    this.#seen++
    return recordAt(this.#block!, this.#left.pop()!)
  }

  async readTotal(): Promise<number> {
    if (this.#source.total !== undefined) return this.#source.total
    while (!this.isOver) {
      if (this.count === undefined) await this.open()
      await this.leave()
    }
    return this.#seen
  }
}

export async function mergePage(
  sources: readonly Source[],
  filter: LogFilter,
  { skip, size }: { skip: number; size: number },
): Promise<LogPage> {
  const page: LogPage = { records: [], total: 0 }
  const streams = sources.map((source) => new Stream(source, filter))
  for (const stream of streams) await stream.advance()
  for (let toSkip = skip; page.records.length < size; ) {
    const live = streams.filter(({ isOver }) => !isOver)
    if (live.length === 0) break
    const unknown = live.find(({ count }) => count === undefined)
    // All records that are no older than the latest beginning of a piece are in the pieces at hand.
    const latest = live.reduce((one, other) => (other.from > one.from ? other : one))
    const next = live.reduce((one, other) => (other.newest > one.newest ? other : one))
    if (unknown !== undefined) await unknown.open()
    else if (live.reduce((sum, { count }) => sum + count!, 0) <= toSkip) {
      toSkip -= latest.count!
      await latest.leave()
    } else if (!next.isOpen) await next.open()
    else if (next.count === 0) await next.leave()
    else if (toSkip > 0) {
      toSkip--
      next.take()
    } else page.records.push(next.take())
  }
  for (const stream of streams) page.total += await stream.readTotal()
  return page
}
