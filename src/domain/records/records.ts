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
  /** Log records are stored in blocks, so no row has this kind. */
  log: 255,
} as const

export type Kind = keyof typeof KINDS

/** A tenant's secret keys, base64. Only its record holds them, so removing the record destroys them. */
export type TenantKeyBytes = Record<'data' | 'index' | 'fingerprint', string>

/** Stored under tenant number 0, the vault itself. `number` marks the rows of this tenant. */
export interface TenantRecord extends VaultAudit {
  number: number
  id: string
  owner_id: string
  name: string
  settings: { deduplicate_tokens?: 'true' | 'false'; disable_ephemeral_proxy?: 'true' | 'false' }
  keys: TenantKeyBytes
  /** The event types of each enabled webhook, by the webhook's id. */
  webhooks?: Record<string, readonly string[]>
  /**
   * The chains of its log, if an engine of several processes names them; absent if there is at most the first
   * chain.
   */
  log_chains?: number[]
}

/**
 * A person, stored under tenant number 0. `tenants`: the tenants that the person joined. Without a tenant the
 * record is removed.
 */
export interface UserRecord {
  id: string
  tenants?: number[]
  email?: string
  first_name?: string
  last_name?: string
  created_at: string
}

/** The vault's settings, stored under tenant number 0 with the id `vault`. */
export interface SettingsRecord {
  id: 'vault'
  /**
   * base64 of 32 random bytes: the key of the hashes of API keys and links. A rekey of the vault keeps it.
   */
  secrets_key: string
  /** The user who created the vault and owns the tenants created on the command line. */
  owner_id: string
  next_tenant: number
  /** The private key that signs events for webhooks, PEM. It is created on first use. */
  webhook_key?: string
  values: Record<string, unknown>
}

export interface MemberRecord extends VaultAudit {
  id: string
  tenant_id: string
  role: Role
  user_id: string
}

/**
 * Exists until it is accepted or deleted. Its status depends on the clock. `link`: the id of its only valid
 * link.
 */
export interface InvitationRecord extends TenantEntity {
  email: string
  role: GivenRole
  expires_at: string
  link: string
}

/**
 * A mailed link. Its id is the hash of its secret, which does not name the tenant, so it is stored under
 * number 0. `ended`: why.
 */
export interface LinkRecord {
  id: string
  tenant: number
  invitation_id: string
  ended?: 'used' | 'replaced' | 'withdrawn'
}

/**
 * A mail and its delivery. `secret` is the secret of its link, and is removed when the mail is sent or the
 * link ends.
 */
export interface MailRecord {
  id: string
  to: string
  tenant_name: string
  invitation_id?: string
  link_expires_at?: string
  secret?: string
  webhook?: Record<'name' | 'url', string>
  /** `outbox`: no mail server is configured. `dropped`: its link ended while it waited. */
  state: 'outbox' | 'waiting' | 'sent' | 'refused' | 'dropped'
  attempts: number
  due_at?: string
  /** Why the last attempt failed. The text is ours, not the server's. */
  failure?: string
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
  /** When a replaced key stops working. The record by which the key is found expires at that time too. */
  expires_at?: string
}

/**
 * A session. Its id is the hash of its key, which does not name the tenant, so it is stored under number 0.
 * `nonce` is a hash too.
 */
export interface SessionRecord {
  id: string
  /** Its id in events of webhooks. */
  told_as: string
  created_at: string
  tenant: number
  application_id: string
  nonce: string
  expires: number
  /** The rights of the session, and the private application that granted them. */
  authorized?: Grants & { by: string }
}

export type AssociationRecord = Record<'id' | 'parent_id' | 'child_id' | 'created_by' | 'created_at', string>

/** A token was created, read or used in this month; see `operations/token/lifetime.ts`. */
export interface ActivityRecord {
  /** `2030-01/<token id>`; or, without a month, `last/<type>` */
  id: string
  month: string
  /** The type of the token, if this is about its creation. */
  created?: string
  at: string
}

/**
 * A private formula belongs to a tenant. An official formula is stored under tenant number 0 and visible to
 * all tenants.
 */
export interface FormulaRecord extends FormulaBody, Audit {
  id: string
  status: 'verified' | 'coming_soon'
}

/** If the application of `application_id` no longer exists, the proxy is unbound. */
export interface ProxyRecord extends TenantEntity {
  name: string
  /** Chooses the proxy of a call. It grants nothing unless `require_auth` is false. */
  key: string
  destination_url: string
  application_id?: string
  configuration: Record<string, string>
  require_auth: boolean
  disable_detokenization: boolean
  request_transforms: ProxyTransform[]
  response_transforms: ProxyTransform[]
  request_reactor_id?: string
  response_reactor_id?: string
}

export interface WebhookRecord extends TenantEntity {
  name: string
  url: string
  events: string[]
  notify_email?: string
  status: 'enabled' | 'disabled'
  /** When the webhook was created or enabled again. Earlier events are not sent. */
  enabled_at: string
  destination?: DestinationState
  dropped?: { count: number; last_at: string }
}

/**
 * Why events of a webhook wait. It is stored here once, not with each event. `blocked`: a server may not call
 * the address. `failing`: many attempts in a row failed.
 */
export interface DestinationState {
  state: 'blocked' | 'failing'
  since: string
  failure: string
  /** While failing: the earliest time of an attempt to send a new event. */
  next_attempt_at?: string
}

export interface EventPayload {
  id: string
  type: string
  timestamp: string
  trace_id: string
  data: Record<string, object>
}

/**
 * Events of one unit of work. Their common attributes are stored once. Each webhook refers to the batch by a
 * {@link WaitingBatchRecord}.
 */
export interface EventBatchRecord {
  id: string
  tenant_id: string
  trace_id: string
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
 * Events of a batch that were never tried for one webhook. An event becomes a {@link DeliveryRecord} before
 * its first attempt (`domain/webhook/event-batch.ts`).
 */
export interface WaitingBatchRecord {
  id: string
  webhook_id: string
  batch_id: string
  /** The waiting events, as indexes in the batch, in order. */
  places: number[]
  created_at: string
}

/** An event for one webhook. `dropped`: the webhook was disabled while the event waited. */
export interface DeliveryRecord {
  id: string
  tenant_id: string
  webhook_id: string
  event: EventPayload
  state: 'waiting' | 'sent' | 'failed' | 'dropped'
  attempts: number
  due_at?: string
  /** The time of the last attempt, and the status and beginning of its answer; or why there was no answer. */
  attempted_at?: string
  status?: number
  answer?: string
  failure?: string
  created_at: string
  /** When it was created, or when a caller asked to send it again. */
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
  /**
   * The application of an API key, or the proxy of a proxy key, stored under tenant number 0. The id is the
   * hash of the key.
   */
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

export function kindOf(number: number): Kind {
  const kind = (Object.keys(KINDS) as Kind[]).find((name) => KINDS[name] === number)
  if (kind !== undefined) return kind
  throw new CofferError('vault_unsupported', 'The vault holds records of a kind that is not known here.')
}
