import type { TenantEntity } from './token-record.js'

/** The name is unique in the tenant. */
export interface MerchantRecord extends TenantEntity {
  name: string
  details?: MerchantDetails
}

/** Facts that card networks ask for. Coffer checks only the lengths of the texts. */
export interface MerchantDetails {
  merchant?: Texts<(typeof MERCHANT_TEXTS)[number]> & {
    registration?: Texts<(typeof REGISTRATION_TEXTS)[number]>
    contact?: Texts<(typeof CONTACT_TEXTS)[number]>
    address?: Texts<(typeof ADDRESS_TEXTS)[number]>
  }
  card_network_info?: {
    [Network in keyof typeof NETWORK_TEXTS]?: Texts<(typeof NETWORK_TEXTS)[Network][number]>
  }
}

type Texts<Name extends string> = { [Each in Name]?: string }

export const MERCHANT_TEXTS = [
  'full_legal_name',
  'doing_business_as',
  'parent_company_name',
  'website_url',
  'category_code_mcc',
  'descriptor',
  'business_description',
] as const
export const REGISTRATION_TEXTS = ['registration_type', 'registration_id', 'vat_id'] as const
export const CONTACT_TEXTS = ['name', 'title', 'phone_number', 'email'] as const
export const ADDRESS_TEXTS = [
  'street_1',
  'street_2',
  'city',
  'state_province',
  'postal_code',
  'country',
] as const
export const NETWORK_TEXTS = {
  visa: ['acquirer_bin', 'card_acceptor_id_caid'],
  mastercard: ['merchant_id_mid'],
  amex: ['se_number'],
  discover: ['merchant_id_mid'],
} as const
