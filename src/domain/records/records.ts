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
 * The number of each kind on disk. Never change the number of a kind, and never use a number for another kind. The
 * next number is 49, because the smaller numbers that are missing here are left out deliberately.
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

/**
 * The trace id of the request that caused a record. A property of this type is absent in records that earlier
 * versions of Coffer have stored.
 */
export type TraceId = string

/**
 * The secret keys of a tenant, base64. No other record has these keys, so removing the record of the tenant destroys
 * the keys.
 */
export type TenantKeyBytes = Record<'data' | 'index' | 'fingerprint', string>

/**
 * The record of a tenant is stored under tenant number 0, which stands for the vault itself. `number` marks the rows
 * of this tenant.
 */
export interface TenantRecord extends VaultAudit {
  number: number
  id: string
  owner_id: string
  name: string
  settings: { deduplicate_tokens?: 'true' | 'false'; disable_ephemeral_proxy?: 'true' | 'false' }
  keys: TenantKeyBytes
  webhooks?: Record<string, readonly string[]>
  /** The e-mail address of the person who gets mail about vulnerabilities. */
  security_contact?: string
  /**
   * The numbers of the chains of the tenant's log. A store that several processes share sets this property when the
   * log has more than the first chain.
   */
  log_chains?: number[]
}

/**
 * A person, stored under tenant number 0. `tenants`: the tenants that the person joined. When the person has
 * left the last tenant, the record is removed.
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
   * The key of the hashes of API keys and links: 32 random bytes as base64. A rekey of the vault keeps this
   * key.
   */
  secrets_key: string
  /** The user who created the vault. This user also owns the tenants that commands create. */
  owner_id: string
  next_tenant: number
  /**
   * The private key that signs events for webhooks, as PEM. The key is created when it is needed for the first time.
   */
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
 * The record exists until somebody accepts or deletes the invitation. The status of an invitation depends on the
 * clock. `link`: the id of the only valid link of the invitation.
 */
export interface InvitationRecord extends TenantEntity {
  email: string
  role: GivenRole
  expires_at: string
  link: string
}

/**
 * A link in a mail, stored under tenant number 0, because the secret of the link does not name the tenant. The id is
 * the hash of the secret. `ended`: why the link is no longer valid.
 */
export interface LinkRecord {
  id: string
  tenant: number
  invitation_id: string
  ended?: 'used' | 'replaced' | 'withdrawn'
}

/**
 * A mail and its delivery. `secret`: the secret of the link in the mail. The secret is removed when the mail
 * is sent or the link ends.
 */
export interface MailRecord {
  id: string
  to: string
  tenant_name: string
  invitation_id?: string
  link_expires_at?: string
  secret?: string
  webhook?: Record<'name' | 'url', string>
  /** `outbox`: no mail server is configured. `dropped`: the link in the mail ended while the mail waited. */
  state: 'outbox' | 'waiting' | 'sent' | 'refused' | 'dropped'
  attempts: number
  due_at?: string
  /**
   * Why the last attempt failed. Coffer writes this text itself, because an error text of the mail server
   * could contain anything.
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

/** An API key of an application. Only its hash is stored, never the key itself. */
export interface ApplicationKey extends Record<'id' | 'hash' | 'created_by' | 'created_at', string> {
  /** When a replaced key expires. The record that finds the application by the key expires at that time too. */
  expires_at?: string
}

/**
 * A session, stored under tenant number 0, because the key of the session does not name the tenant. The id is the
 * hash of the key. `nonce` is a hash too.
 */
export interface SessionRecord {
  id: string
  /** The id of the session in events for webhooks. */
  told_as: string
  created_at: string
  tenant: number
  application_id: string
  nonce: string
  expires: number
  /** The rights of the session. `by`: the private application that granted the rights. */
  authorized?: Grants & { by: string }
}

export type AssociationRecord = Record<'id' | 'parent_id' | 'child_id' | 'created_by' | 'created_at', string>

/** Says that a token was created, read or used in this month; see `operations/token/lifetime.ts`. */
export interface ActivityRecord {
  /** `2030-01/<token id>` for a month, or `last/<type>` for the last creation of a type. */
  id: string
  month: string
  /** The type of the token. Present only if the record is about the creation of the token. */
  created?: string
  at: string
}

/**
 * A private formula belongs to a tenant. An official formula is stored under tenant number 0, and all tenants
 * see it.
 */
export interface FormulaRecord extends FormulaBody, Audit {
  id: string
  status: 'verified' | 'coming_soon'
}

/** If the application with the id `application_id` no longer exists, the proxy acts for no application. */
export interface ProxyRecord extends TenantEntity, ProxyVersion {
  name: string
  /** A call names its proxy by this key. The key grants nothing unless `require_auth` is false. */
  key: string
  destination_url: string
  application_id?: string
  require_auth: boolean
  disable_detokenization: boolean
  request_reactor_id?: string
  response_reactor_id?: string
  /**
   * The version that was requested last. Absent if the record already has the attributes of the version that was
   * requested last.
   */
  requested?: Requested<ProxyVersion>
}

/** The attributes of a proxy that are built together as one version. */
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
  /** When the webhook was created, or enabled again. Events from before this time are not sent. */
  enabled_at: string
  destination?: DestinationState
  dropped?: { count: number; last_at: string }
  /**
   * A listener takes the events of this webhook, so the server does not send these events. `seen_at`: about when the
   * listener took events last.
   */
  listener?: { seen_at: string }
}

/**
 * The progress of a log sink. `position`: for each chain of the tenant's log, how many records the sink has received.
 * `id`: the address of the sink.
 */
export interface LogSinkRecord {
  id: string
  position: Record<string, number>
}

/**
 * Why events of a webhook wait. This state is stored once in the record of the webhook, and not with each
 * event. `blocked`: a server may not call the address. `failing`: many attempts in a row failed.
 */
export interface DestinationState {
  state: 'blocked' | 'failing'
  since: string
  failure: string
  /** Only for `failing`: no new event is sent before this time. */
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
 * The events of one unit of work. The batch stores their common attributes once. Each webhook refers to the
 * batch in a {@link WaitingBatchRecord}.
 */
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
 * The events of a batch that were never tried for one webhook. Before its first attempt, an event becomes a {@link
 * DeliveryRecord} (`domain/webhook/event-batch.ts`).
 */
export interface WaitingBatchRecord {
  id: string
  webhook_id: string
  batch_id: string
  /** The waiting events in their order, as indexes in `events` of the batch. */
  places: number[]
  created_at: string
  kept_from?: string
  trace_id?: TraceId
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
  /**
   * The time of the last attempt. `status` and `answer`: the status of the response and the beginning of its body.
   * `failure`: the reason why no response arrived.
   */
  attempted_at?: string
  status?: number
  answer?: string
  failure?: string
  created_at: string
  /** When the period begins for which the delivery is kept. The default is `created_at`. */
  kept_from?: string
  /** When the delivery was created, or when a caller asked to send it again. */
  queued_at: string
}

/**
 * A key with which clients encrypt the data of tokens: both halves of an X25519 key, base64url. No answer
 * contains the private half.
 */
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
  client_key: ClientKeyRecord
  merchant: MerchantRecord
  threeds_session: ThreeDsSessionRecord
  threeds_timer: ThreeDsTimerRecord
  threeds_place: ThreeDsPlaceRecord
  callback: CallbackRecord
  /** A job and the parts of its files are records of one kind. */
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
