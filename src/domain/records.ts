/**
 * The shapes that are kept in the vault, one interface per kind, and what each may be looked up by.
 * Fields are spelled as the API spells them. Nothing here knows how or where a record is stored.
 */
import { CofferError } from '../errors.js'
import type { Rule } from './access.js'
import type { EntityType } from './entity-types.js'
import type { FormulaBody } from './formula.js'
import type { ApplicationType, Permission } from './permissions.js'
import type { TokenRecord } from './token/token-record.js'

export type { TokenRecord } from './token/token-record.js'

/** Numbers of the kinds as they stand on disk. A number is never given twice, nor to another kind. */
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
  formula: 20,
  reactor: 21,
  reactor_log: 22,
  log: 255,
} as const

export type Kind = keyof typeof KINDS

/** A tenant's secret keys, base64; they live in its record alone, so that removing it destroys them. */
export interface TenantKeyBytes {
  data: string
  index: string
  fingerprint: string
}

/** Kept under the vault's own tenant number 0; `number` is what rows of this tenant carry. */
export interface TenantRecord {
  number: number
  id: string
  owner_id: string
  name: string
  settings: { deduplicate_tokens?: 'true' | 'false' }
  keys: TenantKeyBytes
  created_by?: string
  created_at: string
  modified_by?: string
  modified_at?: string
}

/** A person, under tenant number 0. `tenants` are those they were invited to and joined; without one left they go. */
export interface UserRecord {
  id: string
  tenants?: number[]
  email?: string
  first_name?: string
  last_name?: string
  picture?: string
  created_at: string
}

/** One distinct set of containers in use, so that "every container readable" is an `or` over sets. */
export interface ContainersRecord {
  id: string
  containers: string[]
}

/** The vault's own settings, under tenant number 0, always with id `vault`. */
export interface SettingsRecord {
  id: 'vault'
  /** base64 of 32 random bytes: keys the hashes of API keys and links; it outlives a change of the vault's keys. */
  secrets_key: string
  /** The user who created the vault, and owns every tenant made on its command line. */
  owner_id: string
  /** The number that the next tenant gets; none is ever given twice. */
  next_tenant: number
  values: Record<string, unknown>
}

/** `user_id` leads to a {@link UserRecord} under tenant number 0. */
export interface MemberRecord {
  id: string
  tenant_id: string
  role: 'OWNER' | 'ADMIN'
  user_id: string
  created_by?: string
  created_at: string
  modified_by?: string
  modified_at?: string
}

/** Lives until it is accepted or deleted; its status is decided by the clock. `link` is the id of its one live link. */
export interface InvitationRecord {
  id: string
  tenant_id: string
  email: string
  expires_at: string
  link: string
  created_by: string
  created_at: string
  modified_by?: string
  modified_at?: string
}

/**
 * A link that was mailed, under tenant number 0 because nothing else about it says whose it is. The id is the hash of
 * its secret. `ended` says why it works no more.
 */
export interface LinkRecord {
  id: string
  tenant: number
  invitation_id: string
  ended?: 'used' | 'replaced' | 'withdrawn'
}

/**
 * One mail that was written, with what became of it. `secret` opens the link in it, and is dropped as soon as nobody
 * needs it here: when the mail was sent, or the link ended.
 */
export interface MailRecord {
  id: string
  invitation_id: string
  to: string
  tenant_name: string
  link_expires_at: string
  secret?: string
  /** `outbox`: nobody sends it, it is read here. `dropped`: it was waiting when its link ended. */
  state: 'outbox' | 'waiting' | 'sent' | 'refused' | 'dropped'
  attempts: number
  /** When a waiting mail is tried again. */
  due_at?: string
  /** Why the last attempt failed, in our words. */
  failure?: string
  /** The mail server that took it, or was tried last. */
  server?: string
  created_at: string
  sent_at?: string
}

export interface ApplicationRecord {
  id: string
  tenant_id: string
  name: string
  type: ApplicationType
  permissions: Permission[]
  rules: Rule[]
  /** Hash of its API key; the key itself is nowhere. */
  key_hash: string
  expires_at?: string
  created_by: string
  created_at: string
  modified_by?: string
  modified_at?: string
}

/** Whose key it is, under tenant number 0; the id is the key's hash. */
export interface ApiKeyRecord {
  id: string
  tenant: number
  application_id: string
}

export interface AssociationRecord {
  /** {@link associationId} */
  id: string
  parent_id: string
  child_id: string
  created_by: string
  created_at: string
}

/** That a token was created, read or used in a month; `created` names its type where it was created. */
export interface ActivityRecord {
  /** `2030-01/<token id>` */
  id: string
  month: string
  created?: string
  at: string
}

/** A private one is its tenant's; an official one is under tenant number 0 and seen by all. */
export interface FormulaRecord extends FormulaBody {
  id: string
  status: 'verified' | 'coming_soon'
  created_by: string
  created_at: string
  modified_by?: string
  modified_at?: string
}

/** `application_id` of an application that is gone leads nowhere: the reactor is unbound. */
export interface ReactorRecord {
  id: string
  tenant_id: string
  name: string
  formula_id: string
  /** Each value as text. */
  configuration: Record<string, string>
  application_id?: string
  created_by: string
  created_at: string
  modified_by?: string
  modified_at?: string
}

/** One run of a reactor, for the owner of the vault: console and stack may hold what the code was given. */
export interface ReactorLogRecord {
  id: string
  reactor_id: string
  /** `done`, or the code of the error that it ended with. */
  outcome: string
  status: number
  detail?: string
  errors?: Record<string, string[]>
  duration_ms: number
  memory_mib: number
  console: { level: string; text: string }[]
  stack?: string
  created_at: string
  trace_id: string
}

/** `trace_id` stays inside the vault; the API's log object has the other fields. */
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
}

export interface RecordOf {
  tenant: TenantRecord
  user: UserRecord
  token: TokenRecord
  containers: ContainersRecord
  settings: SettingsRecord
  application: ApplicationRecord
  api_key: ApiKeyRecord
  association: AssociationRecord
  activity: ActivityRecord
  member: MemberRecord
  invitation: InvitationRecord
  link: LinkRecord
  mail: MailRecord
  formula: FormulaRecord
  reactor: ReactorRecord
  reactor_log: ReactorLogRecord
  log: LogRecord
}

/** The id of the association of two tokens; unambiguous, whatever the ids hold. */
export function associationId(parentId: string, childId: string): string {
  return JSON.stringify([parentId, childId])
}

/** @throws CofferError `vault_unsupported` for a number that no kind has. */
export function kindOf(number: number): Kind {
  const kind = (Object.keys(KINDS) as Kind[]).find((name) => KINDS[name] === number)
  if (kind !== undefined) return kind
  throw new CofferError(
    'vault_unsupported',
    'The vault holds a kind of record that this program does not know.',
  )
}
