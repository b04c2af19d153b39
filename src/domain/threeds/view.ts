/** The form of sessions in answers. An attribute without a value is absent. */
import { omitUndefined } from '../omit-undefined.js'
import type { ThreeDsSessionRecord } from '../records/threeds-record.js'
import {
  type BrandName,
  CANCEL_REASONS,
  CHALLENGE_PREFERENCES,
  type METHOD_INDICATORS,
  STATUS_REASONS,
  STATUSES,
} from './enumerations.js'
import { CHALLENGE_PATH, METHOD_PATH, methodNotificationPath, redirectPath } from './paths.js'
import { type Authenticated, isAuthenticated, shownResult } from './session.js'

const VERSION = '2.2.0'
const DIRECTORY_SERVER = 'M000000003'
/** 20 bytes in base64. All samples of the service have this value. */
const AUTHENTICATION_VALUE = 'LVJhdmVsaW4gVGVzdCBWYWx1ZS0='

type Session = ThreeDsSessionRecord

export function viewCreated(session: Session) {
  const { id, type, brands, base, redirect, metadata } = session
  return {
    id,
    type,
    cardBrand: brands[0] ?? '',
    ...(brands.length > 1 && { additional_card_brands: [...brands] as string[] }),
    method_url: methodUrl(session),
    method_notification_url: type === 'merchant' ? '' : base + methodNotificationPath(id),
    directory_server_id: DIRECTORY_SERVER,
    recommended_version: VERSION,
    ...(redirect && { redirect_url: `${base}${redirectPath(id)}?apiKey=` }),
    ...(metadata && { metadata }),
  }
}

function methodUrl({ method, base }: Session): string {
  return method === undefined ? '' : base + METHOD_PATH
}

function describeCard({ token_id, token_intent_id }: Session) {
  return omitUndefined({ token_id, pan_token_id: token_id, token_intent_id })
}

export function viewSession(session: Session) {
  const { id, tenant_id, type, device, device_info, web_challenge_mode, metadata, brands } = session
  const { created_at, created_by, modified_at, modified_by, expires_at, method } = session
  const indicator: (typeof METHOD_INDICATORS)[number] =
    method === undefined ? 'U' : method === 'done' ? 'Y' : 'N'
  return {
    id,
    tenant_id,
    type,
    ...describeCard(session),
    ...omitUndefined({ device, device_info, web_challenge_mode, card_brand: brands[0] }),
    ...(brands.length > 1 && { additional_card_brands: [...brands] as string[] }),
    ...omitUndefined({ metadata, expiration_date: expires_at }),
    created_date: created_at,
    created_by,
    ...omitUndefined({ modified_date: modified_at, modified_by }),
    version: {
      recommended_version: VERSION,
      available_versions: ['2.1.0', '2.2.0'],
      earliest_acs_supported_version: '2.1.0',
      earliest_ds_supported_version: '2.1.0',
      latest_acs_supported_version: VERSION,
      latest_ds_supported_version: VERSION,
      acs_information: [
        'threeds-auth-available',
        'threeds-attempts-supported',
        'threeds-whitelisting-supported',
      ],
    },
    method: { method_url: methodUrl(session), method_completion_indicator: indicator },
    ...(isAuthenticated(session) && { authentication: viewAuthentication(session) }),
  }
}

export function viewAuthentication(session: Authenticated) {
  const { authentication, device_info, base, id } = session
  const { first, challenge, challenge_preference: preference, isFinal = false } = authentication
  const result = shownResult(authentication)
  const { status, reason, cancelled } = result
  const brand = authentication.brand ?? session.brands[0]
  const isApp = challenge?.kind === 'app' && !isFinal
  return {
    session_id: id,
    ...describeCard(session),
    threeds_version: VERSION,
    acs_transaction_id: authentication.acs_transaction_id,
    ds_transaction_id: authentication.ds_transaction_id,
    ...omitUndefined({ sdk_transaction_id: device_info?.sdk_transaction_id as string | undefined }),
    acs_reference_number: 'mock-acs-reference-number',
    ds_reference_number: 'mock-directory-server-a',
    liability_shifted: false,
    authentication_status: status,
    authentication_status_code: STATUSES[status],
    ...omitUndefined({
      authentication_status_reason: reason,
      authentication_status_reason_code: reason && STATUS_REASONS[reason],
    }),
    directory_status_code: STATUSES[first.status],
    ...describeProof(status, brand),
    ...(challenge && {
      acs_challenge_mandated: challenge.isMandated ? ('Y' as const) : ('N' as const),
      authentication_challenge_type: challenge.type,
    }),
    ...(challenge?.kind === 'browser' && { acs_challenge_url: base + CHALLENGE_PATH }),
    ...(status === 'decoupled_challenge' && { acs_decoupled_authentication: 'Y' as const }),
    ...(isApp && { acs_rendering_type: { acsInterface: '01', acsUiTemplate: '01' } }),
    ...(preference && {
      challenge_preference: preference,
      challenge_preference_code: CHALLENGE_PREFERENCES[preference],
    }),
    ...(isFinal &&
      challenge && { challenge_attempts: String(Math.max(1, challenge.attempts)).padStart(2, '0') }),
    ...(cancelled && {
      challenge_cancel_reason: cancelled,
      challenge_cancel_reason_code: CANCEL_REASONS[cancelled],
    }),
    ...(isFinal && challenge && { message_extensions: [] }),
  }
}

/** With the authentication value and the indicator (ECI), a payment proves that the cardholder was authenticated. */
function describeProof(
  status: string,
  brand: BrandName | undefined,
): { authentication_value?: string; eci?: string } {
  if (status !== 'successful' && status !== 'attempted') return {}
  const isMastercard = brand === 'Mastercard'
  const eci = status === 'successful' ? (isMastercard ? '02' : '05') : isMastercard ? '01' : '06'
  return { authentication_value: AUTHENTICATION_VALUE, eci }
}
