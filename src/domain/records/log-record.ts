import type { Transform } from '../access/permissions.js'

/** The API's log object has all of these fields except `trace_id` and `transform`. */
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

/**
 * The attributes that several log records have in common. A block stores these attributes once. An attribute with the
 * value null is absent.
 */
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
 * `shape`: the index of the record's shape in its block. `time`: ms since the epoch. `id`: base64url of the
 * bytes of the UUID.
 */
export type LogItem = [time: number, shape: number, entity_id: string, trace_id: string, id: string]

export const BLOCK_RECORDS = 32

export interface LogLines {
  shapes: LogShape[]
  items: LogItem[]
}

/** A full block. The `id` of a block is `chain/block/number`. */
export interface LogBlockRecord extends LogLines {
  id: string
  value: string
}

/** The end of a log's chain. The `id` of this record is `chain/head`. */
export interface LogHeadRecord {
  id: string
  /**
   * `blocks`: how many blocks were ever written. `gone`: how many of the written blocks were dropped later.
   */
  blocks: number
  gone: number
  tail: LogLines
  /**
   * `start`: the value of the chain before the first remaining record. `value`: the value of the chain after the last
   * record.
   */
  start: string
  value: string
  /** A digest of the other attributes of this record, made with the key of the chain. */
  proof: string
  types: Partial<Record<EntityType, number>>
  /**
   * The batches of entries that the chain has taken. Present only if the engine stores a change first, and writes the
   * log records about this change later.
   */
  taken?: TakenBatches
}

/**
 * The batches of pending entries that a chain has taken. `storage/taken-batches.ts` reads and extends this
 * list.
 */
export interface TakenBatches {
  /** The newest batches of each server that writes the log. The key is the server's random name in hexadecimal. */
  by: Record<string, ServerBatches>
  /** The time of the newest batch of any server that was dropped from `by`, ms since the epoch. */
  until: number
}

interface ServerBatches {
  at: number
  /**
   * The numbers of the batches that were taken, as ascending ranges. The first and the last number of a range
   * belong to the range.
   */
  ranges: [from: number, to: number][]
  /** The ranges below this number were dropped, so it is unknown whether a batch with a lower number was taken. */
  from?: number
}

export const ENTITY_TYPES = {
  account_updater_job: 'AccountUpdaterJob',
  apple_pay: 'ApplePay',
  apple_pay_certificate: 'ApplePayCertificate',
  apple_pay_merchant: 'ApplePayMerchant',
  application: 'Application',
  bank: 'Bank',
  card: 'Card',
  document: 'Document',
  google_pay: 'GooglePay',
  google_pay_certificate: 'GooglePayCertificate',
  google_pay_merchant: 'GooglePayMerchant',
  invitation: 'Invitation',
  key: 'Key',
  member: 'Member',
  merchant: 'Merchant',
  network_token: 'NetworkToken',
  proxy: 'Proxy',
  reactor: 'Reactor',
  reactor_formula: 'ReactorFormula',
  tenant: 'Tenant',
  threeds_session: 'ThreeDsSession',
  token: 'Token',
  token_intent: 'TokenIntent',
  webhook: 'Webhook',
} as const

export type EntityType = keyof typeof ENTITY_TYPES
