import type { TenantEntity } from './token-record.js'

/** `inactive`: the network has ended the network token. No request changes this state. */
export type NetworkTokenStatus = 'active' | 'suspended' | 'inactive'

/** Contains the number of the network token, but not the number of the card. */
export interface NetworkTokenRecord extends TenantEntity {
  number: string
  expiration_month: number
  expiration_year: number
  card: { last4: string; expiration_month: number; expiration_year: number }
  /** The payment account reference, equal for all network tokens of one card. */
  par: string
  status: NetworkTokenStatus
  /** A keyed digest of the card number. A tenant has one network token for each card. */
  fingerprint: string
  token_id?: string | undefined
  token_intent_id?: string | undefined
  /** `waiting`: the network token becomes inactive at `due_at`. */
  state?: 'waiting' | undefined
  due_at?: string | undefined
}
