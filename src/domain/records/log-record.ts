/** Log records, and the blocks, headers and head that a log is stored as. */

import type { Transform } from '../access/permissions.js'
import type { EntityType } from './entity-types.js'
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
  /** How a token's data was shown or used. */
  transform?: Transform
}

/** The attributes that log records share, stored once for each block; null means absent. */
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
  /** The number of records that the log had before. */
  first: number
  shapes: LogShape[]
  items: LogItem[]
}

/** The summary of a block, to search without opening it. `types` counts records by type of entity. */
export interface LogBlockHeader {
  count: number
  /** Earliest and latest time. */
  from: number
  to: number
  types: Partial<Record<EntityType, number>>
  /** The chain's value after this block. */
  value: string
}

/** The headers of some blocks, in order. */
export interface LogIndexRecord {
  id: string
  headers: LogBlockHeader[]
}

/** The end of a log's chain, and the numbers of its blocks and parts. */
export interface LogHeadRecord {
  id: string
  /** Records ever written, and how many of the oldest were dropped since. */
  count: number
  dropped: number
  /** Blocks ever written, and how many of them were dropped. */
  blocks: number
  gone: number
  /** Parts that are in no block yet: their number, bytes and records, and the most that were ever used at once. */
  parts: number
  partBytes: number
  partRecords: number
  mostParts: number
  /** The chain's value after the last dropped block, after the last block, and at the end. */
  start: string
  base: string
  value: string
  /** The batches that entries came in, if entries are written later than the change that they record. */
  taken?: TakenBatches
}
