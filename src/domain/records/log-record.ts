import type { Transform } from '../access/permissions.js'

/** The API's log object has all fields except `trace_id` and `transform`. */
export interface LogRecord {
  id: string
  tenant_id: string
  actor_id?: string
  actor_type?: 'application' | 'user' | 'system'
  entity_type: EntityType
  entity_id: string
  operation: 'create' | 'read' | 'update' | 'delete' | 'use' | 'react'
  message: string
  created_at: string
  trace_id: string
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
/** `shape` is a position in the block's shapes; `time` is in ms since the epoch; `id` is base64url of the UUID's bytes. */
export type LogItem = [time: number, shape: number, entity_id: string, trace_id: string, id: string]

/** Records of each block of a log. */
export const BLOCK_RECORDS = 32

/** Log records that are sealed together, oldest first. */
export interface LogLines {
  shapes: LogShape[]
  items: LogItem[]
}

/** A full block; its `id` is `chain/block/number`. */
export interface LogBlockRecord extends LogLines {
  id: string
  /** The chain's value after its last record. */
  value: string
}

/** The end of a log's chain; its `id` is `chain/head`. */
export interface LogHeadRecord {
  id: string
  /** Blocks ever written, and how many of them were dropped since. */
  blocks: number
  gone: number
  /** The records that fill no block yet. */
  tail: LogLines
  /** The chain's value before the first record that is left, and after the last one. */
  start: string
  value: string
  /** A digest of the other numbers and values under the chain's key. */
  proof: string
  /** How many records are left, by type of entity. */
  types: Partial<Record<EntityType, number>>
  /** The batches that entries came in, if entries are written later than the change that they record. */
  taken?: TakenBatches
}

/** Which batches of pending entries a chain has taken. `storage/taken-batches.ts` reads and extends it. */
export interface TakenBatches {
  /** The newest batches of each server that writes the log, by the server's random name in hexadecimal. */
  by: Record<string, ServerBatches>
  /** The time of the newest batch of the servers that were dropped from `by`, ms since the epoch. */
  until: number
}

interface ServerBatches {
  /** The time of the newest batch, ms since the epoch. */
  at: number
  /** The numbers of the batches that were taken, as ascending ranges that include both ends. */
  ranges: [from: number, to: number][]
  /** Ranges below this number were dropped, so nobody knows whether a lower number was taken. */
  from?: number
}

/** The types of entities in log records, each with its name for people. */
export const ENTITY_TYPES = {
  application: 'Application',
  bank: 'Bank',
  card: 'Card',
  invitation: 'Invitation',
  member: 'Member',
  proxy: 'Proxy',
  reactor: 'Reactor',
  reactor_formula: 'ReactorFormula',
  tenant: 'Tenant',
  token: 'Token',
  token_intent: 'TokenIntent',
  webhook: 'Webhook',
} as const

export type EntityType = keyof typeof ENTITY_TYPES
