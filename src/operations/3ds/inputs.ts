/**
 * The bodies of the requests of 3-D Secure. `domain/threeds/request.ts` checks the rules that depend on
 * several attributes.
 */
import * as values from '../../domain/threeds/enumerations.js'
import { inputSchema, lenientInput } from '../../framework/schema.js'

const MAX_TEXT = 500
const MAX_DEVICE_TEXT = 5000
/** The limit of EMV 3-D Secure for the encrypted data of an app. */
const MAX_ENCRYPTED_TEXT = 64_000
const MAX_ID = 400
const MAX_URL = 2000

const text = { type: 'string', minLength: 1, maxLength: MAX_TEXT } as const
const deviceText = { type: 'string', maxLength: MAX_DEVICE_TEXT } as const
const boolean = { type: 'boolean' } as const
const oneOf = <const V extends readonly string[]>(choices: V) => ({ type: 'string', enum: choices }) as const
const described = <const S extends object>(schema: S, description: string) =>
  ({ ...schema, description }) as const

export const sessionId = { type: 'string', maxLength: MAX_ID, description: 'The id of the session.' } as const

const cardId = (what: string) => described({ type: 'string', maxLength: MAX_ID }, `The id of ${what}.`)

export const metadata = {
  type: 'object',
  additionalProperties: { type: 'string' },
  maxProperties: 50,
  description: 'Data of your own that is not secret.',
} as const

export const deviceInfo = {
  ...inputSchema([], {
    browser_javascript_enabled: boolean,
    browser_java_enabled: boolean,
    browser_language: deviceText,
    browser_color_depth: deviceText,
    browser_screen_height: deviceText,
    browser_screen_width: deviceText,
    browser_tz: deviceText,
    browser_user_agent: deviceText,
    browser_accept_header: deviceText,
    browser_ip: deviceText,
    sdk_transaction_id: deviceText,
    sdk_application_id: deviceText,
    sdk_encryption_data: { ...deviceText, maxLength: MAX_ENCRYPTED_TEXT },
    sdk_ephemeral_public_key: deviceText,
    sdk_max_timeout: deviceText,
    sdk_reference_number: deviceText,
    sdk_render_options: {
      ...inputSchema(['sdk_interface', 'sdk_ui_type'], {
        sdk_interface: deviceText,
        sdk_ui_type: { type: 'array', items: deviceText, maxItems: 20 },
      }),
    },
  }),
  description: 'The properties of the browser or app.',
} as const

const phone = lenientInput([], { country_code: text, number: text })
const address = lenientInput([], {
  line1: text,
  line2: text,
  line3: text,
  postal_code: text,
  city: text,
  state_code: text,
  country_code: text,
})

const merchantInfo = {
  ...lenientInput([], {
    mid: text,
    acquirer_bin: text,
    name: text,
    country_code: text,
    category_code: text,
    url: { ...text, maxLength: MAX_URL },
    risk_info: lenientInput([], {
      delivery_email: text,
      delivery_time_frame: oneOf(values.DELIVERY_TIME_FRAMES),
      gift_card_amount: text,
      gift_card_count: text,
      gift_card_currency: text,
      pre_order_purchase: boolean,
      pre_order_date: text,
      reordered_purchase: boolean,
      shipping_method: oneOf(values.SHIPPING_METHODS),
    }),
  }),
  description: 'The merchant. Required for a payment.',
} as const

const purchaseInfo = {
  ...lenientInput([], {
    amount: text,
    currency: text,
    exponent: text,
    date: text,
    transaction_type: oneOf(values.TRANSACTION_TYPES),
    installment_count: text,
    recurring_expiration: text,
    recurring_frequency: text,
  }),
  description: 'The purchase. Required for payments, and for recurring and instalment transactions.',
} as const

const cardholderInfo = {
  ...lenientInput(['name', 'email'], {
    name: text,
    email: text,
    account_id: text,
    account_type: oneOf(values.ACCOUNT_TYPES),
    billing_shipping_address_match: oneOf(values.ADDRESS_MATCHES),
    phone_number: phone,
    mobile_phone_number: phone,
    work_phone_number: phone,
    billing_address: address,
    shipping_address: address,
    account_info: lenientInput([], {
      account_age: oneOf(values.ACCOUNT_AGES),
      account_last_changed: oneOf(values.ACCOUNT_CHANGES),
      account_change_date: text,
      account_created_date: text,
      account_pwd_last_changed: oneOf(values.ACCOUNT_CHANGES),
      account_pwd_change_date: text,
      purchase_count_half_year: text,
      transaction_count_day: text,
      payment_account_age: text,
      transaction_count_year: text,
      payment_account_created: oneOf(values.ACCOUNT_AGES),
      shipping_address_first_used: oneOf(values.ADDRESS_USES),
      shipping_address_usage_date: text,
      shipping_account_name_match: boolean,
      suspicious_activity_observed: boolean,
    }),
    authentication_info: lenientInput([], {
      method: oneOf(values.LOGIN_METHODS),
      timestamp: text,
      data: text,
    }),
    prior_authentication_info: lenientInput([], {
      method: oneOf(values.PRIOR_METHODS),
      timestamp: text,
      reference_id: text,
      data: text,
    }),
  }),
  description: 'The cardholder: at least name and email.',
} as const

/** The longest time of a decoupled challenge: 7 days, in minutes. */
const MAX_DECOUPLED_MINUTES = 10_080

export const AUTHENTICATION_REQUIRED = [
  'authentication_category',
  'authentication_type',
  'cardholder_info',
] as const

export const authenticationAttributes = {
  authentication_category: described(oneOf(values.CATEGORIES), 'payment or non-payment.'),
  authentication_type: described(
    oneOf(values.ALL_AUTHENTICATION_TYPES),
    'Such as payment-transaction for a customer, or other-payment for a merchant.',
  ),
  card_brand: described(text, 'Only for a card with several brands: the brand to use.'),
  challenge_preference: described(
    oneOf(Object.keys(values.CHALLENGE_PREFERENCES) as values.ChallengePreference[]),
    'The challenge that you prefer. The preference has no effect on test cards.',
  ),
  request_decoupled_challenge: described(
    boolean,
    'Whether the bank may ask the cardholder without a browser. Default: true for a merchant.',
  ),
  decoupled_challenge_max_time: {
    type: 'integer',
    minimum: 1,
    maximum: MAX_DECOUPLED_MINUTES,
    description:
      'How long the bank may take, in minutes. Required for a merchant, or if request_decoupled_challenge is true.',
  },
  merchant_info: merchantInfo,
  purchase_info: purchaseInfo,
  cardholder_info: cardholderInfo,
  requestor_info: {
    ...lenientInput([], {
      amex_requestor_type: oneOf(values.AMEX_REQUESTOR_TYPES),
      cb_siret_number: text,
      discover_client_id: text,
      discover_requestor_id: text,
      id: text,
      name: text,
      url: { ...text, maxLength: MAX_URL },
    }),
    description: 'The requestor of the authentication, for some schemes.',
  },
  message_extensions: {
    type: 'array',
    maxItems: 10,
    flag: 'message-extension',
    items: inputSchema([], { id: text, name: text, critical: boolean, data: {} }),
    description: 'An extension of the message, as JSON.',
  },
} as const

export const createInput = lenientInput([], {
  token_id: { ...cardId('a card token'), refersTo: 'token' },
  token_intent_id: cardId('a token intent with a card'),
  pan: cardId('a card token: the older name of token_id'),
  type: { ...oneOf(values.SESSION_TYPES), default: 'customer', description: 'customer or merchant.' },
  device: described(oneOf(values.DEVICES), 'browser or app. Required for a customer.'),
  device_info: deviceInfo,
  web_challenge_mode: described(oneOf(values.WEB_CHALLENGE_MODES), 'iframe (default) or redirect.'),
  authentication_request: {
    ...lenientInput(AUTHENTICATION_REQUIRED, authenticationAttributes),
    description: 'With callback_urls: a page of this server sends this authentication request.',
  },
  callback_urls: {
    ...lenientInput(['success', 'failure'], {
      success: { ...text, maxLength: MAX_URL },
      failure: { ...text, maxLength: MAX_URL },
      branding: inputSchema([], { hide_basis_theory_branding: boolean }),
    }),
    description: 'Where the page of this server sends the browser at the end.',
  },
  metadata,
})

export const authenticateInput = lenientInput(['id', ...AUTHENTICATION_REQUIRED], {
  id: sessionId,
  ...authenticationAttributes,
  metadata,
})
