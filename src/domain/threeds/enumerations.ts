/** The values of attributes in 3-D Secure. If a value has a code, answers contain the code too. */

export const STATUSES = {
  successful: 'Y',
  attempted: 'A',
  failed: 'N',
  unavailable: 'U',
  challenge: 'C',
  decoupled_challenge: 'D',
  rejected: 'R',
  informational: 'I',
} as const
export type Status = keyof typeof STATUSES

export const FINAL_STATUSES = ['successful', 'attempted', 'failed', 'unavailable', 'rejected'] as const
export type FinalStatus = (typeof FINAL_STATUSES)[number]

export const SESSION_TYPES = ['customer', 'merchant'] as const
export type SessionType = (typeof SESSION_TYPES)[number]

export const DEVICES = ['browser', 'app'] as const
export type Device = (typeof DEVICES)[number]

export const WEB_CHALLENGE_MODES = ['iframe', 'redirect'] as const

export const CATEGORIES = ['payment', 'non-payment'] as const

const SHARED_TYPES = [
  'recurring-transaction',
  'installment-transaction',
  'add-card',
  'maintain-card',
  'account-verification',
] as const
export const AUTHENTICATION_TYPES = {
  customer: ['payment-transaction', 'cardholder-emv-verification', ...SHARED_TYPES],
  merchant: [
    ...SHARED_TYPES,
    'split-or-delayed-shipment',
    'top-up',
    'mail-order',
    'telephone-order',
    'whitelist-status-check',
    'other-payment',
    'billing-agreement',
  ],
} as const satisfies Record<SessionType, readonly string[]>
export const ALL_AUTHENTICATION_TYPES = [
  ...new Set([...AUTHENTICATION_TYPES.customer, ...AUTHENTICATION_TYPES.merchant]),
] as const

export const CHALLENGE_PREFERENCES = {
  'no-preference': '01',
  'no-challenge': '02',
  'challenge-requested': '03',
  'challenge-mandated': '04',
  'no-challenge-risk-analysis-performed': '05',
  'no-challenge-data-sharing-only': '06',
  'no-challenge-strong-consumer-auth': '07',
  'no-challenge-whitelist-exemption': '08',
  'challenge-requested-whitelist-prompt': '09',
  'cartes-bancaires': '90',
} as const
export type ChallengePreference = keyof typeof CHALLENGE_PREFERENCES

export const TRANSACTION_TYPES = [
  'purchase',
  'check-acceptance',
  'account-funding',
  'quasi-cash',
  'prepaid-activation-load',
] as const

export const AMEX_REQUESTOR_TYPES = ['MER', 'AGG', 'JCB', 'OTA', 'OPT', 'WAL'] as const

export const DELIVERY_TIME_FRAMES = [
  'electronic-delivery',
  'same-day-shipping',
  'overnight-shipping',
  'two-or-more-day-shipping',
] as const

export const SHIPPING_METHODS = [
  'ship-to-billing-address',
  'ship-to-verified-address',
  'ship-to-different-address',
  'ship-to-store',
  'digital-goods',
  'travel-and-event-tickets',
  'other',
] as const

const AGES = ['less-than-30-days', '30-to-60-days', 'more-than-60-days'] as const
export const ACCOUNT_AGES = ['no-account', 'created-this-transaction', ...AGES] as const
export const ACCOUNT_CHANGES = ['no-change', 'changed-this-transaction', ...AGES] as const
export const ADDRESS_USES = ['no-address', 'address-first-used', ...AGES] as const

export const LOGIN_METHODS = [
  'no-login',
  'username-password',
  'federated-id',
  'issuer-credentials',
  'third-party',
  'fido',
  'fido-data-signed',
  'src-assurance-data',
] as const

export const PRIOR_METHODS = ['frictionless', 'challenged', 'avs-verified', 'other'] as const

export const ACCOUNT_TYPES = ['debit', 'credit'] as const
export const ADDRESS_MATCHES = ['Y', 'N'] as const

export const CANCEL_REASONS = {
  'cardholder-canceled': '01',
  'requestor-canceled': '02',
  'transaction-abandoned': '03',
  'acs-timeout': '04',
  'acs-timeout-request-not-received': '05',
  error: '06',
  unknown: '07',
} as const
export type CancelReason = keyof typeof CANCEL_REASONS

/** EMV defines the numbers 01 to 26. The schemes define the numbers from 80 on. */
export const STATUS_REASONS = {
  'card-authentication-failed': '01',
  'unknown-device': '02',
  'unsupported-device': '03',
  'too-many-authentication-attempts': '04',
  'card-expired': '05',
  'invalid-card-number': '06',
  'invalid-transaction': '07',
  'no-card-record': '08',
  'security-failure': '09',
  'stolen-card': '10',
  'suspected-fraud': '11',
  'transaction-not-permitted': '12',
  'cardholder-not-enrolled': '13',
  'timeout-at-acs': '14',
  'low-confidence': '15',
  'medium-confidence': '16',
  'high-confidence': '17',
  'very-high-confidence': '18',
  'max-challenges-exceeded': '19',
  'non-payment-transaction-not-support': '20',
  '3ri-not-supported': '21',
  'acs-technical-issue': '22',
  'decoupled-authentication-required': '23',
  'decoupled-authentication-timeout': '24',
  'insufficient-decoupled-authentication-time': '25',
  'authentication-attempted-but-not-performed': '26',
  'identity-check-insights': '80',
  'error-connecting-to-acs': '80',
  'acs-timed-out': '81',
  'invalid-response-from-acs': '82',
  'system-error-response-from-acs': '83',
  'internal-error-while-generating-cavv': '84',
  'vmid-not-eligible-for-requested-program': '85',
  'protocol-version-not-supported-by-acs': '86',
  'transaction-excluded-from-attempts-processing': '87',
  /** No source gives the number of this reason. */
  'device-3ri-not-routed-to-smart-authentication-stand-in': undefined,
} as const
export type StatusReason = keyof typeof STATUS_REASONS

/**
 * `Y`: the bank has the data of the device. `N`: the bank does not have the data yet. `U`: the session has no method
 * step.
 */
export const METHOD_INDICATORS = ['Y', 'N', 'U'] as const

export const CHALLENGE_TYPES = ['static', 'dynamic', 'out-of-band', 'decoupled'] as const
export type ChallengeType = (typeof CHALLENGE_TYPES)[number]

export const WHITELIST_STATUSES = [
  'merchant-trusted',
  'merchant-not-trusted',
  'not-eligible',
  'pending-confirmation',
  'request-to-trust-rejected',
  'unknown',
] as const
export const WHITELIST_SOURCES = ['3ds-server', 'directory-server', 'acs'] as const

export const BRANDS = [
  'Visa',
  'Mastercard',
  'American Express',
  'Discover',
  'JCB',
  'Diners Club',
  'UnionPay',
  'Cartes Bancaires',
] as const
export type BrandName = (typeof BRANDS)[number]
