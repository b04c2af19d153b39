/** The record of a token. Most attributes have rules of their own, see `token`; the others are listed here. */

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
  /** It counts for the month of `created_at` by itself; without it a record of activity does. */
  counts?: true | undefined
}

/** Attributes that are stored as given, each with a check that returns what is wrong with a value. */
export const KEPT_AS_GIVEN = {
  deduplicate_token: (value: unknown) => (typeof value === 'boolean' ? undefined : 'must be true or false'),
} satisfies Partial<Record<keyof TokenRecord, (value: unknown) => string | undefined>>

export type KeptName = keyof typeof KEPT_AS_GIVEN
