import type { CardEnrichment } from '../enrichment/card-enrichment.js'

export interface Audit {
  created_by: string
  created_at: string
  modified_by?: string
  modified_at?: string
}

export type VaultAudit = Omit<Audit, 'created_by'> & Partial<Pick<Audit, 'created_by'>>

export interface TenantEntity extends Audit {
  id: string
  tenant_id: string
}

/**
 * How long the verification code of a card is kept. Without `until`, the code is kept until the token or token intent
 * is deleted.
 */
export interface CardCode {
  /** From this time on, no read returns the code. In ms of the clock {@link StoreReader.codeTime}. */
  until?: number
  /** The id of a record that expires at the time `until`. At this expiry, the code is erased. */
  timer?: string
  /** The rendered mask without the code of the card. Absent if the mask does not show the code. */
  masked?: unknown
}

/** When this record expires, the sweep erases the code from the token or token intent. */
export interface CodeTimerRecord {
  id: string
  holder: 'token' | 'token_intent'
  holder_id: string
}

/** `masked` is `mask`, rendered when the token was written, so that a read does not render the mask. */
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
  code?: CardCode
  /** Only for a card that was written while the setting `enrichments.fake` was true. */
  card_details?: CardEnrichment
  /** The id of the network token of the card. The network token may have been deleted. */
  network_token_id?: string | undefined
  is_intent?: true | undefined
}

export interface ContainerSetRecord {
  id: string
  containers: string[]
  /** The application that added the set. Absent for the owner of the vault, and in sets of earlier versions. */
  created_by?: string
  /**
   * When the vault found the set without tokens, in ms since the epoch. The set is removed minutes later, unless a
   * token uses the set again.
   */
  unused_since?: number
}

export interface TspDetails {
  tsp: 'Google'
  auth_method: 'PAN_ONLY' | 'CRYPTOGRAM_3DS'
  message_id: string
  eci_indicator: string
  assurance_details: { account_verified: boolean; card_holder_authenticated: boolean }
}

/** Data that is stored for a short time, and can become a token. */
export interface IntentRecord extends TokenRecord {
  expires_at: string
  is_intent: true
  /** Only for a card that came from a wallet. */
  tsp_details?: TspDetails | undefined
}

/** The last batch of a resumable run of `token import`, written together with the tokens of the batch. */
export interface ImportRecord {
  id: string
  actor_id: string
  first: number
  results: {
    status: 'created' | 'deduplicated' | 'refused'
    id?: string
    reason?: string
    errors?: Record<string, string[]>
  }[]
}
