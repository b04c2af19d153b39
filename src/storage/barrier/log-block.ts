/** How log records are packed into blocks, and which of them a query matches. Knows neither rows nor keys. */
import { formatDate } from '../../domain/dates.js'
import type { LogBlockHeader, LogBlockRecord, LogItem, LogShape } from '../../domain/records/log-record.js'
import type { LogRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import type { LogEntry } from '../engine.js'
import type { Condition } from '../store.js'

/** A block takes no more records once it has this many bytes, or this many records. */
export const BLOCK_BYTES = 16_000
export const BLOCK_RECORDS = 250
/** Of a packed record, besides the texts in it. */
const ITEM_BYTES = 26

/** A log record on its way into a block: what it has in common with others, and what it has not. */
export interface LogLine {
  /** About as many bytes as it takes in a row. */
  readonly bytes: number
  /** ms since the epoch. */
  readonly time: number
  readonly shape: LogShape
  readonly entity_id: string
  readonly trace_id: string
}

/** What an engine takes for an entry of a log. */
export type SealedEntry = LogEntry & LogLine

/** `at`: its `created_at`. */
export function createEntry(
  tenant: number,
  record: LogRecord,
  at = Date.parse(record.created_at),
): SealedEntry {
  const { tenant_id, actor_type = null, actor_id = null, entity_type, operation, message } = record
  const { transform = null, entity_id, trace_id } = record
  const shape: LogShape = [tenant_id, actor_type, actor_id, entity_type, operation, message, transform]
  return { tenant, bytes: bytesOf(entity_id, trace_id), time: at, shape, entity_id, trace_id }
}

export function bytesOf(entity_id: string, trace_id: string): number {
  return ITEM_BYTES + entity_id.length + trace_id.length
}

/** `first` is how many records the log had before these. */
export function pack(id: string, first: number, lines: readonly LogLine[]): LogBlockRecord {
  // Lines of one block share their shapes, so few texts are made.
  const numbers = new Map<LogShape | string, number>()
  const shapes: LogShape[] = []
  const items = lines.map(({ time, shape, entity_id, trace_id }): LogItem => {
    let number = numbers.get(shape)
    if (number === undefined) {
      const text = shape.join('/')
      number = numbers.get(text) ?? shapes.push(shape) - 1
      numbers.set(text, number).set(shape, number)
    }
    return [time, number, entity_id, trace_id]
  })
  return { id, first, shapes, items }
}

/** The lines of a block, oldest first. */
export function linesOf({ shapes, items }: LogBlockRecord): LogLine[] {
  return items.map(([time, shape, entity_id, trace_id]) => {
    return { bytes: bytesOf(entity_id, trace_id), time, shape: shapes[shape]!, entity_id, trace_id }
  })
}

/** The records of a block, oldest first. */
export function unpack(block: LogBlockRecord): LogRecord[] {
  return block.items.map((_, index) => recordAt(block, index))
}

export function recordAt({ shapes, items }: LogBlockRecord, index: number): LogRecord {
  const [time, shape, entity_id, trace_id] = items[index]!
  const [tenant_id, actor_type, actor_id, entity_type, operation, message, transform] = shapes[shape]!
  const created_at = formatDate(time)
  const record: LogRecord = { tenant_id, entity_type, entity_id, operation, message, created_at, trace_id }
  if (actor_id !== null) record.actor_id = actor_id
  if (actor_type !== null) record.actor_type = actor_type
  if (transform !== null) record.transform = transform
  return record
}

/** Lines in runs, each of which fills a block; only the last may be too few. */
export function cut(lines: readonly LogLine[]): LogLine[][] {
  const runs: LogLine[][] = []
  let bytes = 0
  for (const line of lines) {
    const run = runs.at(-1)
    if (run === undefined || bytes >= BLOCK_BYTES || run.length >= BLOCK_RECORDS) {
      runs.push([line])
      bytes = 0
    } else run.push(line)
    bytes += line.bytes
  }
  return runs
}

export function isFull(lines: readonly LogLine[]): boolean {
  return lines.length >= BLOCK_RECORDS || sumBytes(lines) >= BLOCK_BYTES
}

export function sumBytes(lines: readonly LogLine[]): number {
  return lines.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** `value`: the chain after the block. */
export function describe({ shapes, items }: LogBlockRecord, value: string): LogBlockHeader {
  const types: LogBlockHeader['types'] = {}
  let from = Number.MAX_SAFE_INTEGER
  let to = 0
  for (const [time, shape] of items) {
    const type = shapes[shape]![3]
    types[type] = (types[type] ?? 0) + 1
    if (time < from) from = time
    if (time > to) to = time
  }
  return { count: items.length, from, to, types, value }
}

export interface LogPage {
  /** Newest first. */
  records: LogRecord[]
  total: number
}

export interface LogFilter {
  entity?: string
  types?: ReadonlySet<string>
  from: number
  below: number
  /** Whether there is anything else to be met. */
  isSpecial: boolean
  matchesShape(shape: LogShape): boolean
}

const TOKENS: ReadonlySet<string> = new Set(['token', 'card', 'bank'])
/** Positions in a {@link LogShape} of what only shapes tell. */
const SPECIAL: Readonly<Record<string, number>> = { actor: 2, operation: 4, transform: 6 }

/** Fields: `entity`, `type`, `class` (`token` is cards and banks too), `type_entity`, `actor`, `operation`, `transform`. */
export function toFilter(where: Condition | undefined): LogFilter {
  const parts = where === undefined ? [] : flatten(where)
  const filter: LogFilter = {
    from: Number.NEGATIVE_INFINITY,
    below: Number.POSITIVE_INFINITY,
    isSpecial: false,
    matchesShape: (shape) => parts.every((part) => !('field' in part) || meets(part, shape)),
  }
  for (const part of parts) {
    if ('range' in part) {
      filter.from = Math.max(filter.from, part.from ?? filter.from)
      filter.below = Math.min(filter.below, part.below ?? filter.below)
    } else if (part.field === 'entity') {
      if ((filter.entity ?? part.value) !== part.value) filter.below = Number.NEGATIVE_INFINITY
      filter.entity = part.value
    } else if (part.field === 'type' || part.field === 'class') {
      const wanted = typesOf(part)
      filter.types =
        filter.types === undefined ? wanted : new Set([...wanted].filter((type) => filter.types!.has(type)))
    } else filter.isSpecial = true
  }
  return filter
}

type Part = { field: string; value: string } | { range: string; from?: number; below?: number }

function flatten(where: Condition): Part[] {
  if ('and' in where) return where.and.flatMap(flatten)
  if ('range' in where && where.range === 'created') return [where]
  if ('field' in where && where.field === 'type_entity') {
    const at = where.value.indexOf(':')
    const value = where.value.slice(at + 1)
    return [
      { field: 'class', value: where.value.slice(0, at) },
      { field: 'entity', value },
    ]
  }
  if ('field' in where && (/^(entity|type|class)$/.test(where.field) || where.field in SPECIAL))
    return [where]
  throw new CofferError('internal', 'A log cannot be asked this.')
}

function typesOf({ field, value }: { field: string; value: string }): ReadonlySet<string> {
  return field === 'class' && value === 'token' ? TOKENS : new Set([value])
}

function meets(part: { field: string; value: string }, shape: LogShape): boolean {
  if (part.field === 'entity') return true
  if (part.field === 'type' || part.field === 'class') return typesOf(part).has(shape[3])
  return shape[SPECIAL[part.field]!] === part.value
}

/** The numbers of the block's records that match, ascending. */
export function matchesIn({ shapes, items }: LogBlockRecord, filter: LogFilter): number[] {
  const fit = shapes.map((shape) => filter.matchesShape(shape))
  const found: number[] = []
  items.forEach(([time, shape, entity], index) => {
    const isIn = time >= filter.from && time < filter.below && fit[shape]!
    if (isIn && (filter.entity === undefined || filter.entity === entity)) found.push(index)
  })
  return found
}

/** How many of the block's records match, where its header tells. */
export function countIn({ count, from, to, types }: LogBlockHeader, filter: LogFilter): number | undefined {
  if (to < filter.from || from >= filter.below) return 0
  let matching = filter.types === undefined ? count : 0
  for (const type of filter.types ?? []) matching += (types as Record<string, number>)[type] ?? 0
  if (matching === 0) return 0
  const isSplit = from < filter.from || to >= filter.below
  return filter.entity !== undefined || filter.isSpecial || isSplit ? undefined : matching
}

/** Whether every record matches. */
export function isAll({ entity, types, isSpecial, from, below }: LogFilter): boolean {
  const isRanged = from !== Number.NEGATIVE_INFINITY || below !== Number.POSITIVE_INFINITY
  return entity === undefined && types === undefined && !isSpecial && !isRanged
}
