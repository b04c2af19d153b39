/**
 * The shapes that are kept in the vault, one interface per kind, and what each may be looked up by.
 * Fields are spelled as the API spells them. Nothing here knows how or where a record is stored.
 */

/** Numbers of the kinds as they stand on disk. A number is never given twice, nor to another kind. */
export const KINDS = { tenant: 1, user: 2, token: 3, containers: 4, log: 255 } as const

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
  log: LogRecord
}
