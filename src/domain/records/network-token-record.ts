import type { TenantEntity } from './token-record.js'

/** `inactive`: the network of the card has ended the network token. No request changes this state. */
export type NetworkTokenStatus = 'active' | 'suspended' | 'inactive'

/** A number that the network of a card gives out for the card. The record does not contain the number of the card. */
export interface NetworkTokenRecord extends TenantEntity {
  number: string
  expiration_month: number
  expiration_year: number
  card: { last4: string; expiration_month: number; expiration_year: number }
  /** The account behind the card. All network tokens of one card have the same value. */
  par: string
  status: NetworkTokenStatus
  /** A keyed digest of the number of the card. A tenant has one network token for each card. */
  fingerprint: string
  /** The token or token intent from which the network token was created. */
  token_id?: string | undefined
  token_intent_id?: string | undefined
  /** `waiting`: the delivery queue makes the network token inactive at the time `due_at`. */
  state?: 'waiting' | undefined
  due_at?: string | undefined
}
