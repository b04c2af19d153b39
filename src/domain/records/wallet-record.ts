import type { TenantEntity, TspDetails } from './token-record.js'

export type Wallet = 'google' | 'apple'

export interface WalletCard {
  number: string
  expiration_month: number
  expiration_year: number
}

/** `threeds_cryptogram` proves one payment to the issuer of the card. */
export interface WalletAuthentication {
  threeds_cryptogram: string
  eci_indicator: string
}

interface WalletRecord extends TenantEntity {
  data: WalletCard
  authentication: WalletAuthentication
  fingerprint: string
  expires_at?: string
}

export interface GooglePayRecord extends WalletRecord {
  status: 'active'
  details: TspDetails
}

/**
 * `dpan`: the card number belongs to one device. `mpan`: the card number belongs to one merchant, and the card can be
 * unlinked.
 */
export interface ApplePayRecord extends WalletRecord {
  status: 'active' | 'unlinked'
  type: 'dpan' | 'mpan'
  transaction_id?: string
  payment_data_type: string
  device_manufacturer_identifier: string
}

export interface WalletMerchantRecord extends TenantEntity {
  wallet: Wallet
  merchant_identifier: string
}

/**
 * The certificate files and their passwords are not stored. Fingerprints are SHA-256 digests of the files, hexadecimal.
 */
export interface WalletCertificateRecord extends TenantEntity {
  wallet: Wallet
  merchant_id: string
  domain?: string
  merchant_certificate_fingerprint?: string
  payment_processor_certificate_fingerprint?: string
}

/** A tenant has at most one of these records. */
export interface WalletDomainsRecord {
  id: 'apple'
  domains: string[]
}
