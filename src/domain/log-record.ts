/** A log record, and what a log is stored as: blocks of them, and what leads to these. */
import type { EntityType } from './entity-types.js'
import type { Transform } from './permissions.js'
import type { TakenBatches } from './taken-batches.js'

/** The API's log object has all fields except `trace_id` and `transform`. */
export interface LogRecord {
  tenant_id: string
  actor_id?: string
  actor_type?: 'application' | 'user' | 'system'
  entity_type: EntityType
  entity_id: string
  operation: 'create' | 'read' | 'update' | 'delete' | 'use' | 'react'
  message: string
  created_at: string
  trace_id: string
  /** Of a token's data that was shown or used: how. */
  transform?: Transform
}

/** What log records have in common, once for all of a block; `null` stands for what is absent. */
export type LogShape = [
  tenant_id: string,
  actor_type: NonNullable<LogRecord['actor_type']> | null,
  actor_id: string | null,
  entity_type: EntityType,
  operation: LogRecord['operation'],
  message: string,
  transform: Transform | null,
]
/** `shape` is a position in the block's shapes; `time` is in ms since the epoch. */
export type LogItem = [time: number, shape: number, entity_id: string, trace_id: string]

/** Log records that were sealed together: a block of the log, or a short-lived part of its end. */
export interface LogBlockRecord {
  id: string
  /** How many records the log had before. */
  first: number
  shapes: LogShape[]
  items: LogItem[]
}

/** What is to be known of a block without opening it. `types` counts records by type of entity. */
export interface LogBlockHeader {
  count: number
  /** Earliest and latest time. */
  from: number
  to: number
  types: Partial<Record<EntityType, number>>
  /** Of the chain, after this block. */
  value: string
}

/** The headers of some blocks, in order. */
export interface LogIndexRecord {
  id: string
  headers: LogBlockHeader[]
}

/** The end of a log's chain, and where its parts are. */
export interface LogHeadRecord {
  id: string
  /** Records ever written, and how many of them, the oldest, were dropped since. */
  count: number
  dropped: number
  /** Blocks ever written, and how many of them were dropped. */
  blocks: number
  gone: number
  /** Parts that are in no block yet: how many, how many bytes, how many records, and how many were ever used at once. */
  parts: number
  partBytes: number
  partRecords: number
  mostParts: number
  /** The chain after the last dropped block, after the last block, and at the end. */
  start: string
  base: string
  value: string
  /** Of what the entries came in, where they came later than the change that they tell of. */
  taken?: TakenBatches
}
