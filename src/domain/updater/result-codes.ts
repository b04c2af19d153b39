/** An answer with `UPD_PAN` or `UPD_EXP_DATE` also contains a new token. */
export const RESULT_CODES = [
  'NO_UPDATE',
  'UPD_PAN',
  'UPD_EXP_DATE',
  'UPD_BRAND_CONV',
  'UPD_CORRECTED',
  'WRN_CONTACT_CARDHOLDER',
  'WRN_CLOSED_ACCOUNT',
  'WRN_ISSUER_NOT_ENROLLED',
  'WRN_ISSUER_NO_DATA',
  'WRN_OPT_OUT',
  'WRN_UNSUPPORTED_NETWORK',
  'ERR_INVALID_TOKEN',
  'ERR_INVALID_PAN',
  'ERR_INVALID_EXP_DATE',
  'ERR_INVALID_CONFIG',
  'ERR_UNDEFINED',
] as const

export type ResultCode = (typeof RESULT_CODES)[number]

export const RESULT_VERSIONS = ['1', '1.1', '1.2'] as const
export type ResultVersion = (typeof RESULT_VERSIONS)[number]
