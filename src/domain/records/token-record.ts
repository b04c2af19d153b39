export interface Audit {
  created_by: string
  created_at: string
  modified_by?: string
  modified_at?: string
}

/** The audit attributes of a record that the vault may have made itself. */
export type VaultAudit = Omit<Audit, 'created_by'> & Partial<Pick<Audit, 'created_by'>>

/** A record that a caller made in a tenant. */
export interface TenantEntity extends Audit {
  id: string
  tenant_id: string
}

/** How long the verification code in the data of a card stays. Without `until` it stays as long as its token or intent. */
export interface CardCode {
  /** ms of {@link StoreReader.codeTime}: from then on no read has the code. */
  until?: number
  /** The id of the record that expires then, which has the code erased. */
  timer?: string
  /** The mask rendered without the code, if the mask shows the code. */
  masked?: unknown
}

/** Expires when the code of a card has to be erased from the token or token intent that holds it. */
export interface CodeTimerRecord {
  id: string
  holder: 'token' | 'token_intent'
  holder_id: string
}

/** `masked` is `mask` rendered over `data` when the token was written, so that a read renders nothing. */
export interface TokenRecord extends TenantEntity {
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
  /** Of a card with a verification code. */
  code?: CardCode
  is_intent?: true | undefined
}

/** A distinct set of containers that tokens have. */
export interface ContainerSetRecord {
  id: string
  containers: string[]
  /** The application that added it; absent for the owner of the vault, and in sets of earlier versions. */
  created_by?: string
  /** No token had it then, ms since the epoch. It is removed some minutes later, unless a token has it again. */
  unused_since?: number
}

/** Data that waits for a short time to become a token: a token of its type's defaults, under a kind of its own. */
export interface IntentRecord extends TokenRecord {
  expires_at: string
  is_intent: true
}

/** The last batch of a run of `token import` that can be resumed; written with its tokens. It expires. */
export interface ImportRecord {
  id: string
  actor_id: string
  /** The number of rows in earlier batches. */
  first: number
  results: {
    status: 'created' | 'deduplicated' | 'refused'
    id?: string
    reason?: string
    errors?: Record<string, string[]>
  }[]
}
