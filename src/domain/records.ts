/**
 * The shapes that are kept in the vault, one interface per kind, and what each may be looked up by.
 * Fields are spelled as the API spells them. Nothing here knows how or where a record is stored.
 */
import type { Rule } from './access.js'
import type { ApplicationType, Permission } from './permissions.js'

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

export interface UserRecord {
  id: string
  email?: string
  first_name?: string
  last_name?: string
  picture?: string
  created_at: string
}

/** `masked` is `mask` rendered over `data` when the token was written, so that a read renders nothing. */
export interface TokenRecord {
  id: string
  tenant_id: string
  type: string
  data: unknown
  mask?: unknown
  masked?: unknown
  fingerprint: string
  fingerprint_expression: string
  containers: string[]
  metadata?: Record<string, string>
  search_indexes?: string[]
  deduplicate_token?: boolean
  expires_at?: string
  created_by: string
  created_at: string
  modified_by?: string
  modified_at?: string
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

/** `trace_id` stays inside the vault; the API's log object has the other fields. */
export interface LogRecord {
  tenant_id: string
  actor_id?: string
  actor_type?: 'application' | 'user' | 'system'
  entity_type: string
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
  log: LogRecord
}

/** The id of the association of two tokens; unambiguous, whatever the ids hold. */
export function associationId(parentId: string, childId: string): string {
  return JSON.stringify([parentId, childId])
}
