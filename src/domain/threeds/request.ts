/** Checks that involve several attributes. The schema checks each attribute alone. */
import type { PropertyErrors } from '../../errors.js'
import type { Lenient } from '../omit-undefined.js'
import { addError } from '../property-errors.js'
import type { ThreeDsSessionRecord } from '../records/threeds-record.js'
import { AUTHENTICATION_TYPES, type BrandName } from './enumerations.js'

const IDS = ['token_id', 'token_intent_id', 'pan'] as const
const MAX_URL = 2000

export const BROWSER_INFO = [
  'browser_javascript_enabled',
  'browser_java_enabled',
  'browser_language',
  'browser_color_depth',
  'browser_screen_height',
  'browser_screen_width',
  'browser_tz',
  'browser_user_agent',
] as const
export const OPTIONAL_BROWSER_INFO = ['browser_accept_header', 'browser_ip'] as const
export const APP_INFO = [
  'sdk_transaction_id',
  'sdk_application_id',
  'sdk_encryption_data',
  'sdk_ephemeral_public_key',
  'sdk_max_timeout',
  'sdk_reference_number',
  'sdk_render_options',
] as const

type Members = Readonly<Record<string, unknown>>

export type SessionRequest = Lenient<{
  token_id: string
  token_intent_id: string
  pan: string
  type: string
  device: string
  device_info: Record<string, unknown>
  authentication_request: AuthenticationRequest
  callback_urls: { success: string; failure: string }
}>

export interface AuthenticationRequest {
  authentication_category: string
  authentication_type: string
  card_brand?: string
  challenge_preference?: string
  request_decoupled_challenge?: boolean
  decoupled_challenge_max_time?: number
  merchant_info?: Record<string, unknown>
  purchase_info?: Record<string, unknown>
}

/** Returns the errors that do not depend on stored data. */
export function checkSession(request: SessionRequest): PropertyErrors {
  const errors: PropertyErrors = {}
  const given = IDS.filter((name) => request[name] !== undefined)
  if (given.length === 0) addError(errors, 'token_id', 'is required, unless token_intent_id is given')
  for (const name of given.length > 1 ? given : [])
    addError(errors, name, 'must not be given together with another id of a card')
  const {
    type = 'customer',
    device,
    device_info,
    authentication_request: asked,
    callback_urls: urls,
  } = request
  const isRedirect = asked !== undefined || urls !== undefined
  if (type === 'customer' && device === undefined) addError(errors, 'device', 'is required for a customer')
  if (isRedirect) checkRedirect(errors, request)
  else if (type === 'customer' && device === 'browser') checkDeviceInfo(errors, device_info, BROWSER_INFO)
  return errors
}

function checkRedirect(errors: PropertyErrors, request: SessionRequest): void {
  const { type = 'customer', device, authentication_request: asked, callback_urls: urls } = request
  if (asked === undefined) addError(errors, 'authentication_request', 'is required if callback_urls is given')
  if (urls === undefined) addError(errors, 'callback_urls', 'is required if authentication_request is given')
  if (type === 'merchant' || device === 'app')
    addError(errors, 'callback_urls', 'is only for sessions of a customer with a browser')
  for (const name of ['success', 'failure'] as const) {
    const url = urls?.[name]
    if (url !== undefined && !isWebAddress(url))
      addError(
        errors,
        `callback_urls.${name}`,
        'must be an address that begins with http:// or https://, without user information',
      )
  }
  if (asked === undefined) return
  const found = checkAuthentication(asked, 'customer')
  for (const [path, messages] of Object.entries(found))
    for (const message of messages) addError(errors, `authentication_request.${path}`, message)
}

/** A user name before the host could make the address look like the address of another site. */
function isWebAddress(text: string): boolean {
  if (!/^https?:\/\//i.test(text) || text.length > MAX_URL || !URL.canParse(text)) return false
  const { username, password } = new URL(text)
  return username === '' && password === ''
}

export function checkDeviceInfo(
  errors: PropertyErrors,
  info: Members | undefined,
  names: readonly string[],
): void {
  if (info === undefined) addError(errors, 'device_info', 'is required')
  else
    for (const name of names)
      if (info[name] === undefined) addError(errors, `device_info.${name}`, 'is required')
}

/** Copies only known attributes, so that a session never stores others. */
export function keepDeviceInfo(info: Members | undefined, names: readonly string[]): Members | undefined {
  if (info === undefined) return undefined
  return Object.fromEntries(
    names.filter((name) => info[name] !== undefined).map((name) => [name, info[name]]),
  )
}

const MERCHANT = ['mid', 'acquirer_bin', 'name', 'country_code', 'category_code']
const PURCHASE = ['amount', 'currency', 'exponent', 'date']
const DIGITS: readonly [name: string, pattern: RegExp, rule: string][] = [
  ['amount', /^\d+$/, 'must have only digits'],
  ['currency', /^\d+$/, 'must have only digits'],
  ['exponent', /^\d+$/, 'must have only digits'],
  ['date', /^\d{14}$/, 'must have 14 digits: YYYYMMDDhhmmss'],
  ['recurring_expiration', /^\d{8}$/, 'must have 8 digits: YYYYMMDD'],
]

/** `type`: the type of the session. Without `type`, the checks that depend on the type are left out. */
export function checkAuthentication(
  request: Lenient<AuthenticationRequest>,
  type?: ThreeDsSessionRecord['type'],
): PropertyErrors {
  const errors: PropertyErrors = {}
  const { authentication_type: kind, authentication_category: category } = request
  const isPayment = category === 'payment'
  const [isRecurring, isInstalment] = ['recurring-transaction', 'installment-transaction'].map(
    (each) => kind === each,
  )
  if (isPayment) requireMembers(errors, 'merchant_info', request.merchant_info, MERCHANT)
  if (isPayment || isRecurring || isInstalment) {
    const more = isRecurring
      ? ['recurring_expiration', 'recurring_frequency']
      : isInstalment
        ? ['installment_count']
        : []
    requireMembers(errors, 'purchase_info', request.purchase_info, [...PURCHASE, ...more])
  }
  for (const [name, pattern, rule] of DIGITS) {
    const value = request.purchase_info?.[name]
    if (typeof value === 'string' && !pattern.test(value)) addError(errors, `purchase_info.${name}`, rule)
  }
  const isDecoupled = request.request_decoupled_challenge === true || type === 'merchant'
  if (isDecoupled && request.decoupled_challenge_max_time === undefined)
    addError(errors, 'decoupled_challenge_max_time', 'is required')
  const types: readonly string[] | undefined = type && AUTHENTICATION_TYPES[type]
  if (kind !== undefined && types !== undefined && !types.includes(kind))
    addError(errors, 'authentication_type', `must be one of ${types.join(', ')} for a session of a ${type}`)
  return errors
}

function requireMembers(
  errors: PropertyErrors,
  path: string,
  object: Members | undefined,
  names: readonly string[],
): void {
  if (object === undefined) addError(errors, path, 'is required')
  for (const name of names) {
    const value = object?.[name]
    if (value === undefined || value === null || value === '')
      addError(errors, `${path}.${name}`, 'is required')
  }
}

export function chooseBrand(
  { brands }: Pick<ThreeDsSessionRecord, 'brands'>,
  wanted: string,
): BrandName | undefined {
  return brands.find((brand) => brand.toLowerCase() === wanted.toLowerCase())
}
