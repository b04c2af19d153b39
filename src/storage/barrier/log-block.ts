import type { RecordKeys } from '../../crypto/ports.js'
import { formatDate } from '../../domain/dates.js'
import type { LogHeadRecord, LogLines, LogShape } from '../../domain/records/log-record.js'
import type { LogRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import { asBuffer } from '../bytes.js'
import type { LogEntry } from '../engine.js'
import type { Condition } from '../store.js'

/** The approximate size of a log record in a row, without its `entity_id` and `trace_id`. */
const ITEM_BYTES = 51

/** A log record in memory. `shape` has the attributes that several records share, for example the actor. */
export interface LogLine {
  /** ms since the epoch. */
  readonly time: number
  readonly shape: LogShape
  readonly entity_id: string
  readonly trace_id: string
  /** The UUID, packed as base64url. */
  readonly id: string
}

type SealedEntry = LogEntry & LogLine

/** `at`: ms since the epoch. */
export function createEntry(tenant: number, record: Omit<LogRecord, 'created_at'>, at: number): SealedEntry {
  const { tenant_id, actor_type = null, actor_id = null, entity_type, operation, message } = record
  const { transform = null, entity_id, trace_id } = record
  const shape: LogShape = [tenant_id, actor_type, actor_id, entity_type, operation, message, transform]
  return { tenant, bytes: sizeOf(record), time: at, shape, entity_id, trace_id, id: packUuid(record.id) }
}

function packUuid(id: string): string {
  return Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')
}

function unpackUuid(packed: string): string {
  const hex = Buffer.from(packed, 'base64url').toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

export function sizeOf({ entity_id, trace_id }: Pick<LogRecord, 'entity_id' | 'trace_id'>): number {
  return ITEM_BYTES + entity_id.length + trace_id.length
}

export function addLine(
  { shapes, items }: LogLines,
  { time, shape, entity_id, trace_id, id }: LogLine,
): void {
  const known = shapes.findIndex((each) => each.every((value, at) => value === shape[at]))
  items.push([time, known < 0 ? shapes.push(shape) - 1 : known, entity_id, trace_id, id])
}

export function unpack({ shapes, items }: LogLines): LogLine[] {
  return items.map(([time, shape, entity_id, trace_id, id]) => {
    return { time, shape: shapes[shape]!, entity_id, trace_id, id }
  })
}

/** The latest time of the lines, ms since the epoch. 0 if there are no lines. */
export function latestOf({ items }: LogLines): number {
  return items.reduce((latest, [time]) => Math.max(latest, time), 0)
}

export function countTypes(types: LogHeadRecord['types'], lines: readonly LogLine[], sign: 1 | -1) {
  const counts = { ...types }
  for (const { shape } of lines) counts[shape[3]] = (counts[shape[3]] ?? 0) + sign
  return counts
}

export function toRecord({ time, shape, entity_id, trace_id, id: packed }: LogLine): LogRecord {
  const [tenant_id, actor_type, actor_id, entity_type, operation, message, transform] = shape
  const created_at = formatDate(time)
  const id = unpackUuid(packed)
  const record: LogRecord = {
    id,
    tenant_id,
    entity_type,
    entity_id,
    operation,
    message,
    created_at,
    trace_id,
  }
  if (actor_id !== null) record.actor_id = actor_id
  if (actor_type !== null) record.actor_type = actor_type
  if (transform !== null) record.transform = transform
  return record
}

/** A record matches if `matches` returns true. The other members only make searches and counts faster. */
export interface LogFilter {
  matches(line: LogLine): boolean
  entity?: string
  trace?: string
  types?: readonly string[]
  /** ms since the epoch. */
  from?: number
  isAll: boolean
  isByType: boolean
}

type Part = { field: string; value: string } | { range: string; from?: number; below?: number }

const TOKENS = ['token', 'card', 'bank']
const groupOf = (type: string) => (TOKENS.includes(type) ? 'token' : type)

/** The fields that a condition may name. `class`: `token` for tokens, cards and banks, and the type for all others. */
const VALUES: Readonly<Record<string, (line: LogLine) => string | null>> = {
  entity: ({ entity_id }) => entity_id,
  trace: ({ trace_id }) => trace_id,
  type: ({ shape }) => shape[3],
  class: ({ shape }) => groupOf(shape[3]),
  type_entity: ({ shape, entity_id }) => `${groupOf(shape[3])}:${entity_id}`,
  actor: ({ shape }) => shape[2],
  operation: ({ shape }) => shape[4],
  transform: ({ shape }) => shape[6],
}

export function toFilter(where: Condition | undefined): LogFilter {
  const parts = where === undefined ? [] : flatten(where)
  const filter: LogFilter = {
    matches: (line) => parts.every((part) => meets(part, line)),
    isAll: parts.length === 0,
    isByType: parts.length === 1,
  }
  for (const part of parts) {
    if ('field' in part && (part.field === 'type' || part.field === 'class')) {
      filter.types = part.field === 'class' && part.value === 'token' ? TOKENS : [part.value]
      continue
    }
    filter.isByType = false
    if ('range' in part) filter.from = Math.max(filter.from ?? 0, part.from ?? 0)
    else if (part.field === 'entity') filter.entity = part.value
    else if (part.field === 'trace') filter.trace = part.value
    else if (part.field === 'type_entity') filter.entity = part.value.slice(part.value.indexOf(':') + 1)
  }
  return filter
}

function flatten(where: Condition): Part[] {
  if ('and' in where) return where.and.flatMap(flatten)
  if ('field' in where && where.field in VALUES) return [where]
  if ('range' in where && where.range === 'created') return [where]
  throw new CofferError('internal', 'Logs do not support this condition.')
}

function meets(part: Part, line: LogLine): boolean {
  if ('field' in part) return VALUES[part.field]!(line) === part.value
  const { from = Number.NEGATIVE_INFINITY, below = Number.POSITIVE_INFINITY } = part
  return line.time >= from && line.time < below
}

/** Seals pending entries of one tenant. The seal is bound to the `id` of the batch that contains the entries. */
export function sealEntries(keys: RecordKeys, id: Uint8Array, entries: readonly LogEntry[]): Uint8Array {
  const lines: LogLines = { shapes: [], items: [] }
  for (const line of entries as readonly SealedEntry[]) addLine(lines, line)
  const plain = Buffer.from(JSON.stringify(lines))
  const sealed = keys.data.seal(plain, associate(keys, id))
  plain.fill(0)
  return sealed
}

export function openEntries(
  keys: RecordKeys,
  tenant: number,
  id: Uint8Array,
  sealed: Uint8Array,
): SealedEntry[] | undefined {
  const plain = keys.data.open(sealed, associate(keys, id))
  if (plain === undefined) return undefined
  const lines = unpack(JSON.parse(asBuffer(plain).toString('utf8')) as LogLines)
  plain.fill(0)
  return lines.map((line) => ({ ...line, tenant, bytes: sizeOf(line) }))
}

/**
 * This associated data is shorter than the associated data of a record. Therefore sealed entries never open as a
 * record, and a sealed record never opens as entries.
 */
function associate(keys: RecordKeys, id: Uint8Array): Uint8Array {
  return keys.index.digest(`["waiting","${Buffer.from(id).toString('hex')}"]`)
}
