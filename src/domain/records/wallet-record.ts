import type { TenantEntity, TspDetails } from './token-record.js'

/** The wallets whose payloads the vault accepts. */
export type Wallet = 'google' | 'apple'

export interface WalletCard {
  number: string
  expiration_month: number
  expiration_year: number
}

/** `threeds_cryptogram`: proves one payment to the issuer of the card. */
export interface WalletAuthentication {
  threeds_cryptogram: string
  eci_indicator: string
}

interface WalletRecord extends TenantEntity {
  data: WalletCard
  authentication: WalletAuthentication
  fingerprint: string
  /** If absent, the record never expires. */
  expires_at?: string
}

/** A card of Google Pay with a cryptogram. */
export interface GooglePayRecord extends WalletRecord {
  status: 'active'
  details: TspDetails
}

/**
 * A card of Apple Pay. `dpan`: the number of the card belongs to one device. `mpan`: the number of the card belongs
 * to one merchant, and the card can be unlinked.
 */
export interface ApplePayRecord extends WalletRecord {
  status: 'active' | 'unlinked'
  type: 'dpan' | 'mpan'
  transaction_id?: string
  payment_data_type: string
  device_manufacturer_identifier: string
}

/** A merchant of one of the wallets. */
export interface WalletMerchantRecord extends TenantEntity {
  wallet: Wallet
  merchant_identifier: string
}

/**
 * The certificates of a merchant. Neither the PKCS#12 files nor their passwords are stored. The fingerprints are the
 * SHA-256 digests of the files, in hexadecimal.
 */
export interface WalletCertificateRecord extends TenantEntity {
  wallet: Wallet
  merchant_id: string
  domain?: string
  merchant_certificate_fingerprint?: string
  payment_processor_certificate_fingerprint?: string
}

/** The domains of the tenant that are registered for Apple Pay. A tenant has at most one record of this kind. */
export interface WalletDomainsRecord {
  id: 'apple'
  domains: string[]
}
