import type { Transform } from '../access/permissions.js'

/** The API does not show `trace_id` and `transform`. */
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

/** Attributes that several log records of a block share. Null stands for an absent attribute. */
export type LogShape = [
  tenant_id: string,
  actor_type: NonNullable<LogRecord['actor_type']> | null,
  actor_id: string | null,
  entity_type: EntityType,
  operation: LogRecord['operation'],
  message: string,
  transform: Transform | null,
]
/** `time`: ms since the epoch. `shape`: an index in `shapes`. `id`: the bytes of the UUID, base64url. */
export type LogItem = [time: number, shape: number, entity_id: string, trace_id: string, id: string]

export const BLOCK_RECORDS = 32

export interface LogLines {
  shapes: LogShape[]
  items: LogItem[]
}

/** The `id` is `chain/block/number`. */
export interface LogBlockRecord extends LogLines {
  id: string
  value: string
}

/** The end of a chain. The `id` is `chain/head`. */
export interface LogHeadRecord {
  id: string
  /** `blocks`: how many blocks were ever written. `gone`: how many of these blocks were dropped. */
  blocks: number
  gone: number
  tail: LogLines
  /** The value of the chain: `start` before the first remaining record, and `value` after the last record. */
  start: string
  value: string
  /** A digest of the other attributes of this record, made with the key of the chain. */
  proof: string
  types: Partial<Record<EntityType, number>>
  /** Present only if the engine stores a change first, and writes the log records about this change later. */
  taken?: TakenBatches
}

/** The batches of pending entries that a chain has taken. See `storage/taken-batches.ts`. */
export interface TakenBatches {
  /** The newest batches of each server. The key is the random name of the server in hexadecimal. */
  by: Record<string, ServerBatches>
  /** The time of the newest batch that was dropped from `by`, in ms since the epoch. */
  until: number
}

interface ServerBatches {
  at: number
  /** Ascending ranges of the numbers of taken batches. Both ends are included. */
  ranges: [from: number, to: number][]
  /** Ranges below this number were dropped, so it is unknown whether a batch with a lower number was taken. */
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
