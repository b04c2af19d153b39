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
/**
 * `shape`: a position in the block's shapes. `time`: ms since the epoch. `id`: base64url of the UUID's bytes.
 */
export type LogItem = [time: number, shape: number, entity_id: string, trace_id: string, id: string]

export const BLOCK_RECORDS = 32

export interface LogLines {
  shapes: LogShape[]
  items: LogItem[]
}

/** A full block. Its `id` is `chain/block/number`. */
export interface LogBlockRecord extends LogLines {
  id: string
  value: string
}

/** The end of a log's chain. Its `id` is `chain/head`. */
export interface LogHeadRecord {
  id: string
  /** Blocks ever written, and how many of these were dropped later. */
  blocks: number
  gone: number
  tail: LogLines
  /** The chain's value before the first remaining record, and after the last record. */
  start: string
  value: string
  /** A digest of the other numbers and values under the chain's key. */
  proof: string
  types: Partial<Record<EntityType, number>>
  /**
   * The batches of entries that were taken, if entries are written later than the change that they record.
   */
  taken?: TakenBatches
}

/** The batches of pending entries that a chain has taken. `storage/taken-batches.ts` reads and extends it. */
export interface TakenBatches {
  /** The newest batches of each server that writes the log, by the server's random name in hexadecimal. */
  by: Record<string, ServerBatches>
  /** The time of the newest batch of the servers that were dropped from `by`, ms since the epoch. */
  until: number
}

interface ServerBatches {
  at: number
  /** The numbers of the batches that were taken, as ascending ranges that include both ends. */
  ranges: [from: number, to: number][]
  /** Ranges below this number were dropped, so a lower number may or may not have been taken. */
  from?: number
}

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
