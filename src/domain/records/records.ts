/** The records that a vault stores, one interface for each kind. Fields have the names that the API uses. */
import { CofferError } from '../../errors.js'
import type { ContainerRule, Grants } from '../access/access.js'
import type { ApplicationType, GivenRole, Permission, Role } from '../access/permissions.js'
import type { ProxyTransform } from '../proxy/transform.js'
import type { FormulaBody } from '../reactor/formula.js'
import type { AnswerRecord } from './answer-record.js'
import type { LogBlockRecord, LogHeadRecord, LogRecord } from './log-record.js'
import type { ReactorRecord, ReactorResultRecord, ReactorRunRecord } from './reactor-record.js'
import type {
  Audit,
  CodeTimerRecord,
  ContainerSetRecord,
  ImportRecord,
  IntentRecord,
  TenantEntity,
  TokenRecord,
  VaultAudit,
} from './token-record.js'

export type { LogRecord } from './log-record.js'
export type { ReactorRecord, ReactorResultRecord, ReactorRunRecord } from './reactor-record.js'
export type { ContainerSetRecord, IntentRecord, TokenRecord } from './token-record.js'

/** The number of each kind on disk. Never change or reuse a number. The next is 31; gaps are deliberate. */
export const KINDS = {
  tenant: 1,
  user: 2,
  token: 3,
  containers: 4,
  settings: 5,
  application: 6,
  api_key: 7,
  association: 8,
  activity: 9,
  member: 10,
  invitation: 11,
  mail: 12,
  link: 13,
  answer: 14,
  session: 15,
  formula: 20,
  reactor: 21,
  reactor_log: 22,
  reactor_result: 23,
  proxy: 24,
  token_intent: 25,
  webhook: 26,
  delivery: 27,
  code_timer: 28,
  event_batch: 29,
  waiting_batch: 30,
  import: 40,
  log_block: 254,
  /** Log records: they are stored in blocks, so no row has this kind. */
  log: 255,
} as const

export type Kind = keyof typeof KINDS

/** A tenant's secret keys, base64. Only its record holds them, so removing the record destroys them. */
export type TenantKeyBytes = Record<'data' | 'index' | 'fingerprint', string>

/** Stored under tenant number 0, the vault's own; `number` marks the rows of this tenant. */
export interface TenantRecord extends VaultAudit {
  number: number
  id: string
  owner_id: string
  name: string
  settings: { deduplicate_tokens?: 'true' | 'false'; disable_ephemeral_proxy?: 'true' | 'false' }
  keys: TenantKeyBytes
  /** The event types that its webhooks subscribe to, by their ids; nothing for a disabled one. */
  webhooks?: Record<string, readonly string[]>
  /** The chains of its log, if an engine of several processes names them; absent if there is at most the first. */
  log_chains?: number[]
}

/** A person, under tenant number 0. `tenants` are those that the person joined; without any, the record is removed. */
export interface UserRecord {
  id: string
  tenants?: number[]
  email?: string
  first_name?: string
  last_name?: string
  created_at: string
}

/** The vault's settings, under tenant number 0, always with the id `vault`. */
export interface SettingsRecord {
  id: 'vault'
  /** base64 of 32 random bytes: the key of the hashes of API keys and links. A rekey of the vault keeps it. */
  secrets_key: string
  /** The user who created the vault, and who owns the tenants created on the command line. */
  owner_id: string
  /** The number of the next tenant; numbers are never reused. */
  next_tenant: number
  /** The private key that signs what is sent to webhooks, PEM; made when it is first needed. */
  webhook_key?: string
  values: Record<string, unknown>
}

/** `user_id` refers to a {@link UserRecord} under tenant number 0. */
export interface MemberRecord extends VaultAudit {
  id: string
  tenant_id: string
  role: Role
  user_id: string
}

/** Exists until it is accepted or deleted; its status depends on the clock. `link` is the id of its only valid link. */
export interface InvitationRecord extends TenantEntity {
  email: string
  role: GivenRole
  expires_at: string
  link: string
}

/** A mailed link; the id is its secret's hash, which does not tell the tenant, so it is under number 0. `ended`: why. */
export interface LinkRecord {
  id: string
  tenant: number
  invitation_id: string
  ended?: 'used' | 'replaced' | 'withdrawn'
}

/** A mail and its delivery. `secret`, that of its link, is removed when the mail is sent or the link ends. */
export interface MailRecord {
  id: string
  to: string
  tenant_name: string
  invitation_id?: string
  link_expires_at?: string
  secret?: string
  /** Instead of an invitation: the webhook that was disabled. */
  webhook?: Record<'name' | 'url', string>
  /** `outbox`: there is no mail server to send it. `dropped`: it was waiting when its link ended. */
  state: 'outbox' | 'waiting' | 'sent' | 'refused' | 'dropped'
  attempts: number
  /** When a waiting mail is retried. */
  due_at?: string
  /** Why the last attempt failed; our text, not the server's. */
  failure?: string
  /** The mail server that accepted it, or that was tried last. */
  server?: string
  created_at: string
  sent_at?: string
}

export interface ApplicationRecord extends TenantEntity {
  name: string
  type: ApplicationType
  permissions: Permission[]
  rules: ContainerRule[]
  keys: ApplicationKey[]
  expires_at?: string
}

/** An API key of an application. Only its hash is stored, never the key itself. */
export interface ApplicationKey extends Record<'id' | 'hash' | 'created_by' | 'created_at', string> {
  /** When a replaced key stops working. The record by which the key is found expires then too. */
  expires_at?: string
}

/** A session; the id is its key's hash, which does not tell the tenant, so it is under number 0. `nonce` is a hash too. */
export interface SessionRecord {
  id: string
  /** Webhooks are told this as its id. */
  told_as: string
  created_at: string
  tenant: number
  /** The public application that it acts as. */
  application_id: string
  nonce: string
  /** ms since the epoch. */
  expires: number
  /** The rights of the session, and the private application that granted them. */
  authorized?: Grants & { by: string }
}

export type AssociationRecord = Record<'id' | 'parent_id' | 'child_id' | 'created_by' | 'created_at', string>

/** A token was created, read or used in this month; see `operations/token/lifetime.ts`. */
export interface ActivityRecord {
  /** `2030-01/<token id>`; or, without month, `last/<type>` */
  id: string
  month: string
  /** The type of the token if this is about its creation. */
  created?: string
  at: string
}

/** A private formula belongs to a tenant; an official one is under tenant number 0 and visible to all. */
export interface FormulaRecord extends FormulaBody, Audit {
  id: string
  status: 'verified' | 'coming_soon'
}

/** If the application of `application_id` no longer exists, the proxy is unbound. */
export interface ProxyRecord extends TenantEntity {
  name: string
  /** Chooses the proxy of a call; grants nothing unless `require_auth` is false. */
  key: string
  destination_url: string
  application_id?: string
  configuration: Record<string, string>
  require_auth: boolean
  disable_detokenization: boolean
  request_transforms: ProxyTransform[]
  response_transforms: ProxyTransform[]
  /** Reactors that do what transforms do. */
  request_reactor_id?: string
  response_reactor_id?: string
}

export interface WebhookRecord extends TenantEntity {
  name: string
  url: string
  events: string[]
  notify_email?: string
  status: 'enabled' | 'disabled'
  /** When it was created, or enabled again: earlier events are not sent. */
  enabled_at: string
  /** Absent if nothing is known against its address. */
  destination?: DestinationState
  /** The events that were removed without an attempt, because too many waited. */
  dropped?: { count: number; last_at: string }
}

/**
 * Why events of a webhook wait. It is stored here once, and not with each event. `blocked`: a server may not call the
 * address. `failing`: many attempts in a row failed.
 */
export interface DestinationState {
  state: 'blocked' | 'failing'
  since: string
  failure: string
  /** While failing: an event that was never tried is not tried before. */
  next_attempt_at?: string
}

export interface EventPayload {
  id: string
  type: string
  timestamp: string
  trace_id: string
  data: Record<string, object>
}

/** Events of one unit of work. What they have in common is stored once. Webhooks refer to it by a {@link WaitingBatchRecord}. */
export interface EventBatchRecord {
  /** The ids of the events are made of it. */
  id: string
  tenant_id: string
  trace_id: string
  /** Who caused the events. */
  actors: object[]
  events: BatchedEvent[]
  created_at: string
}

/** `actor`: an index in the list of the batch. */
export interface BatchedEvent {
  type: string
  actor: number
  data: Record<string, object>
}

/**
 * Events of a batch that were never tried for one webhook. An event becomes a {@link DeliveryRecord} before its first
 * attempt; `domain/webhook/event-batch.ts` says how.
 */
export interface WaitingBatchRecord {
  /** The ids of the deliveries are made of it. */
  id: string
  webhook_id: string
  batch_id: string
  /** The events that wait, as indexes in the batch, in order. */
  places: number[]
  created_at: string
}

/** An event for one webhook. `dropped`: it was waiting when the webhook was disabled. */
export interface DeliveryRecord {
  id: string
  tenant_id: string
  webhook_id: string
  event: EventPayload
  state: 'waiting' | 'sent' | 'failed' | 'dropped'
  attempts: number
  due_at?: string
  /** The time of the last attempt, and the status and the beginning of its answer, or why there was none. */
  attempted_at?: string
  status?: number
  answer?: string
  failure?: string
  created_at: string
  /** When it was created, or was to be sent again. */
  queued_at: string
}

export interface RecordOf {
  tenant: TenantRecord
  user: UserRecord
  token: TokenRecord
  token_intent: IntentRecord
  code_timer: CodeTimerRecord
  containers: ContainerSetRecord
  settings: SettingsRecord
  application: ApplicationRecord
  /** The application of an API key, or the proxy of a proxy key, under tenant number 0; the id is the key's hash. */
  api_key: { id: string; tenant: number; application_id?: string; proxy_id?: string }
  association: AssociationRecord
  activity: ActivityRecord
  member: MemberRecord
  invitation: InvitationRecord
  link: LinkRecord
  session: SessionRecord
  answer: AnswerRecord
  mail: MailRecord
  formula: FormulaRecord
  reactor: ReactorRecord
  reactor_log: ReactorRunRecord
  reactor_result: ReactorResultRecord
  proxy: ProxyRecord
  webhook: WebhookRecord
  delivery: DeliveryRecord
  event_batch: EventBatchRecord
  waiting_batch: WaitingBatchRecord
  import: ImportRecord
  log_block: LogBlockRecord | LogHeadRecord
  log: LogRecord
}

export function associationId(parentId: string, childId: string): string {
  return JSON.stringify([parentId, childId])
}

/** @throws CofferError `vault_unsupported` for a number that no kind has. */
export function kindOf(number: number): Kind {
  const kind = (Object.keys(KINDS) as Kind[]).find((name) => KINDS[name] === number)
  if (kind !== undefined) return kind
  throw new CofferError('vault_unsupported', 'The vault holds records of a kind that is not known here.')
}
