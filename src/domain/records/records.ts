/** The records that a vault stores, with one interface for each kind. Fields have the names that the API uses. */
import { CofferError } from '../../errors.js'
import type { ContainerRule, Grants } from '../access/access.js'
import type { ApplicationType, GivenRole, Permission, Role } from '../access/permissions.js'
import type { ProxyTransform } from '../proxy/transform.js'
import type { FormulaBody } from '../reactor/formula.js'
import type { Requested } from '../reactor/state.js'
import type { AnswerRecord } from './answer-record.js'
import type { DocumentChunkRecord, DocumentRecord } from './document-record.js'
import type { LogBlockRecord, LogHeadRecord, LogRecord } from './log-record.js'
import type { MerchantRecord } from './merchant-record.js'
import type { NetworkTokenRecord } from './network-token-record.js'
import type {
  CallbackRecord,
  ReactorRecord,
  ReactorResultRecord,
  ReactorRunRecord,
} from './reactor-record.js'
import type { ThreeDsPlaceRecord, ThreeDsSessionRecord, ThreeDsTimerRecord } from './threeds-record.js'
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
import type { UpdaterJobRecord, UpdaterPartRecord } from './updater-record.js'
import type {
  ApplePayRecord,
  GooglePayRecord,
  WalletCertificateRecord,
  WalletDomainsRecord,
  WalletMerchantRecord,
} from './wallet-record.js'

export type { DocumentRecord } from './document-record.js'
export type { LogRecord } from './log-record.js'
export type { NetworkTokenRecord } from './network-token-record.js'
export type {
  CallbackRecord,
  ReactorRecord,
  ReactorResultRecord,
  ReactorRunRecord,
} from './reactor-record.js'
export type { ThreeDsSessionRecord } from './threeds-record.js'
export type { ContainerSetRecord, IntentRecord, TokenRecord } from './token-record.js'

/**
 * The numbers of the kinds on disk. Never change a number, and never use a number for another kind. The next number is
 * 49, because the missing smaller numbers are reserved.
 */
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
  client_key: 31,
  threeds_session: 32,
  threeds_timer: 33,
  callback: 34,
  account_updater_job: 35,
  network_token: 36,
  document: 37,
  google_pay: 38,
  apple_pay: 39,
  import: 40,
  log_sink: 41,
  merchant: 42,
  threeds_place: 43,
  wallet_domains: 44,
  wallet_merchant: 46,
  wallet_certificate: 47,
  document_chunk: 48,
  log_block: 254,
  log: 255,
} as const

export type Kind = keyof typeof KINDS

/** Identifies the request that caused a record. Absent in records of earlier versions. */
export type TraceId = string

/** Base64. No other record has these keys, so removing the record of the tenant destroys the keys. */
export type TenantKeyBytes = Record<'data' | 'index' | 'fingerprint', string>

/** Stored under tenant number 0, which stands for the vault. `number` marks the rows of this tenant. */
export interface TenantRecord extends VaultAudit {
  number: number
  id: string
  owner_id: string
  name: string
  settings: { deduplicate_tokens?: 'true' | 'false'; disable_ephemeral_proxy?: 'true' | 'false' }
  keys: TenantKeyBytes
  webhooks?: Record<string, readonly string[]>
  /** The e-mail address for reports of vulnerabilities. */
  security_contact?: string
  /** The numbers of the chains of the log. Absent if the log has only the first chain. */
  log_chains?: number[]
}

/**
 * Stored under tenant number 0. `tenants`: the tenants that the person joined. When the person leaves the last tenant,
 * the record is removed.
 */
export interface UserRecord {
  id: string
  tenants?: number[]
  email?: string
  first_name?: string
  last_name?: string
  created_at: string
}

/** Stored under tenant number 0. */
export interface SettingsRecord {
  id: 'vault'
  /** The key of the hashes of API keys and links: 32 random bytes, base64. A rekey of the vault keeps this key. */
  secrets_key: string
  /** The user who created the vault, and who owns the tenants that commands create. */
  owner_id: string
  next_tenant: number
  /** The private key that signs events, as PEM. Created at its first use. */
  webhook_key?: string
  values: Record<string, unknown>
}

export interface MemberRecord extends VaultAudit {
  id: string
  tenant_id: string
  role: Role
  user_id: string
}

/** The record exists until the invitation is accepted or deleted. `link`: the id of the only valid link. */
export interface InvitationRecord extends TenantEntity {
  email: string
  role: GivenRole
  expires_at: string
  link: string
}

/**
 * Stored under tenant number 0, because the secret of the link does not name the tenant. The id is the hash of the
 * secret. `ended`: why the link is no longer valid.
 */
export interface LinkRecord {
  id: string
  tenant: number
  invitation_id: string
  ended?: 'used' | 'replaced' | 'withdrawn'
}

/** `secret`: the secret of the link in the mail, removed when the mail is sent or the link ends. */
export interface MailRecord {
  id: string
  to: string
  tenant_name: string
  invitation_id?: string
  link_expires_at?: string
  secret?: string
  webhook?: Record<'name' | 'url', string>
  /** `outbox`: no mail server is configured. `dropped`: the link ended before the mail was sent. */
  state: 'outbox' | 'waiting' | 'sent' | 'refused' | 'dropped'
  attempts: number
  due_at?: string
  /**
   * Why the last attempt failed. Coffer writes this text itself, because a text of the mail server could contain
   * anything.
   */
  failure?: string
  server?: string
  created_at: string
  sent_at?: string
  trace_id?: TraceId
}

export interface ApplicationRecord extends TenantEntity {
  name: string
  type: ApplicationType
  permissions: Permission[]
  rules: ContainerRule[]
  keys: ApplicationKey[]
  expires_at?: string
}

/** Only the hash of the key is stored. */
export interface ApplicationKey extends Record<'id' | 'hash' | 'created_by' | 'created_at', string> {
  /** Only for a replaced key. The `api_key` record of the key expires at the same time. */
  expires_at?: string
}

/**
 * Stored under tenant number 0, because the key of the session does not name the tenant. The id is the hash of the key.
 * `nonce` is a hash too.
 */
export interface SessionRecord {
  id: string
  /** The id of the session in events. */
  told_as: string
  created_at: string
  tenant: number
  application_id: string
  nonce: string
  expires: number
  /** `by`: the private application that granted these rights. */
  authorized?: Grants & { by: string }
}

export type AssociationRecord = Record<'id' | 'parent_id' | 'child_id' | 'created_by' | 'created_at', string>

/** The record exists if the token was created, read or used in the month. See `operations/token/lifetime.ts`. */
export interface ActivityRecord {
  /** `2030-01/<token id>` for a month, or `last/<type>` for the last creation of a type. */
  id: string
  month: string
  /** The type of the created token. Absent if the token was read or used. */
  created?: string
  at: string
}

/** An official formula is stored under tenant number 0, and all tenants can read the formula. */
export interface FormulaRecord extends FormulaBody, Audit {
  id: string
  status: 'verified' | 'coming_soon'
}

/** If the application no longer exists, the proxy acts for no application. */
export interface ProxyRecord extends TenantEntity, ProxyVersion {
  name: string
  /** Identifies the proxy in a call. The key grants nothing unless `require_auth` is false. */
  key: string
  destination_url: string
  application_id?: string
  require_auth: boolean
  disable_detokenization: boolean
  request_reactor_id?: string
  response_reactor_id?: string
  /** Present only if the build of the newest version takes time or fails. */
  requested?: Requested<ProxyVersion>
}

export interface ProxyVersion {
  configuration: Record<string, string>
  request_transforms: ProxyTransform[]
  response_transforms: ProxyTransform[]
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
  /**
   * If present, a listener fetches the events, and the server does not send them. `seen_at`: the approximate time when
   * the listener last fetched events.
   */
  listener?: { seen_at: string }
}

/** `id`: the address of the sink. `position`: for each chain of the log, how many records the sink has received. */
export interface LogSinkRecord {
  id: string
  position: Record<string, number>
}

/**
 * Why events of a webhook wait. `blocked`: calls to the address are not allowed. `failing`: many attempts in a row
 * failed.
 */
export interface DestinationState {
  state: 'blocked' | 'failing'
  since: string
  failure: string
  /** Only for `failing`: no event is sent before this time. */
  next_attempt_at?: string
}

export interface EventPayload {
  id: string
  type: string
  timestamp: string
  trace_id: string
  data: Record<string, object>
}

/** The events of one unit of work. Each webhook refers to the batch in a {@link WaitingBatchRecord}. */
export interface EventBatchRecord {
  id: string
  tenant_id: string
  trace_id: string
  actors: object[]
  events: BatchedEvent[]
  created_at: string
  kept_from?: string
}

/** `actor`: an index in `actors` of the batch. */
export interface BatchedEvent {
  type: string
  actor: number
  data: Record<string, object>
}

/**
 * The events of a batch that the server has not yet tried to send to one webhook. Before its first attempt, an event
 * becomes a {@link DeliveryRecord}.
 */
export interface WaitingBatchRecord {
  id: string
  webhook_id: string
  batch_id: string
  /** Indexes in `events` of the batch, in the order of the events. */
  places: number[]
  created_at: string
  kept_from?: string
  trace_id?: TraceId
}

/** An event for one webhook. `dropped`: the webhook was disabled before the event was sent. */
export interface DeliveryRecord {
  id: string
  tenant_id: string
  webhook_id: string
  event: EventPayload
  state: 'waiting' | 'sent' | 'failed' | 'dropped'
  attempts: number
  due_at?: string
  /**
   * The last attempt. `status` and `answer`: the status of the response and the beginning of its body. `failure`: why
   * no response arrived.
   */
  attempted_at?: string
  status?: number
  answer?: string
  failure?: string
  created_at: string
  /** When the retention period begins. The default is `created_at`. */
  kept_from?: string
  /** When the delivery was created, or when a caller asked to send the delivery again. */
  queued_at: string
}

/** Both halves of an X25519 key, base64url. No answer contains the private half. */
export interface ClientKeyRecord extends TenantEntity {
  public_key: string
  private_key: string
  expires_at: string
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
  /** Stored under tenant number 0. The id is the hash of an API key, or of the key of a proxy. */
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
  client_key: ClientKeyRecord
  merchant: MerchantRecord
  threeds_session: ThreeDsSessionRecord
  threeds_timer: ThreeDsTimerRecord
  threeds_place: ThreeDsPlaceRecord
  callback: CallbackRecord
  account_updater_job: UpdaterJobRecord | UpdaterPartRecord
  network_token: NetworkTokenRecord
  google_pay: GooglePayRecord
  apple_pay: ApplePayRecord
  wallet_merchant: WalletMerchantRecord
  wallet_certificate: WalletCertificateRecord
  wallet_domains: WalletDomainsRecord
  document: DocumentRecord
  document_chunk: DocumentChunkRecord
  import: ImportRecord
  log_sink: LogSinkRecord
  log_block: LogBlockRecord | LogHeadRecord
  log: LogRecord
}

export function associationId(parentId: string, childId: string): string {
  return JSON.stringify([parentId, childId])
}

export function kindOf(number: number): Kind {
  const kind = (Object.keys(KINDS) as Kind[]).find((name) => KINDS[name] === number)
  if (kind !== undefined) return kind
  throw new CofferError(
    'vault_unsupported',
    'The vault has records of a kind that this version of Coffer does not know.',
  )
}
