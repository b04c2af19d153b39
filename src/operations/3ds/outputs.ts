import * as values from '../../domain/threeds/enumerations.js'
import {
  anyJson,
  boolean,
  component,
  date,
  enumOf,
  object,
  text,
  textMap,
  texts,
  uuid,
} from '../../framework/output.js'

const choice = <const V extends string>(choices: readonly V[]) => ({ enum: choices }) as const
const namesOf = <const T extends object>(table: T) => Object.keys(table) as (keyof T & string)[]

const card = { 'token_id?': text, 'pan_token_id?': text, 'token_intent_id?': uuid } as const

export const createdOutput = component('ThreeDsCreatedSession', ['id', 'cardBrand', 'method_url'], {
  id: uuid,
  type: choice(values.SESSION_TYPES),
  cardBrand: {
    ...text,
    description: 'Empty if the brand is unknown. Only this answer uses the spelling cardBrand.',
  },
  'additional_card_brands?': texts,
  method_url: { ...text, description: 'Empty if there is no method step.' },
  method_notification_url: text,
  directory_server_id: text,
  recommended_version: text,
  'redirect_url?': text,
  'metadata?': textMap,
})

export const authenticationOutput = component(
  'ThreeDsAuthentication',
  ['session_id', 'authentication_status', 'authentication_status_reason', 'eci'],
  {
    session_id: uuid,
    ...card,
    threeds_version: text,
    acs_transaction_id: uuid,
    ds_transaction_id: uuid,
    'sdk_transaction_id?': text,
    acs_reference_number: text,
    ds_reference_number: text,
    liability_shifted: boolean,
    authentication_status: choice(namesOf(values.STATUSES)),
    authentication_status_code: choice(Object.values(values.STATUSES)),
    'authentication_status_reason?': choice(namesOf(values.STATUS_REASONS)),
    'authentication_status_reason_code?': text,
    directory_status_code: choice(Object.values(values.STATUSES)),
    'authentication_value?': text,
    'eci?': text,
    'acs_challenge_mandated?': enumOf('Y', 'N'),
    'authentication_challenge_type?': choice(values.CHALLENGE_TYPES),
    'acs_challenge_url?': text,
    'acs_decoupled_authentication?': enumOf('Y', 'N'),
    'acs_rendering_type?': object({ acsInterface: text, acsUiTemplate: text }),
    'challenge_preference?': choice(namesOf(values.CHALLENGE_PREFERENCES)),
    'challenge_preference_code?': text,
    'challenge_attempts?': text,
    'challenge_cancel_reason?': choice(namesOf(values.CANCEL_REASONS)),
    'challenge_cancel_reason_code?': text,
    'message_extensions?': { type: 'array', items: anyJson('An extension of the message.') },
  },
)

export const sessionOutput = component(
  'ThreeDsSession',
  ['id', 'type', 'card_brand', 'authentication.authentication_status', 'created_date', 'expiration_date'],
  {
    id: uuid,
    tenant_id: uuid,
    type: choice(values.SESSION_TYPES),
    ...card,
    'device?': choice(values.DEVICES),
    'device_info?': anyJson('The properties of the browser or app.'),
    'web_challenge_mode?': choice(values.WEB_CHALLENGE_MODES),
    'card_brand?': text,
    'additional_card_brands?': texts,
    'metadata?': textMap,
    'expiration_date?': { ...date, description: 'Only until the session is authenticated.' },
    created_date: date,
    created_by: uuid,
    'modified_date?': date,
    'modified_by?': uuid,
    version: object({
      recommended_version: text,
      available_versions: texts,
      earliest_acs_supported_version: text,
      earliest_ds_supported_version: text,
      latest_acs_supported_version: text,
      latest_ds_supported_version: text,
      acs_information: texts,
    }),
    method: object({ method_url: text, method_completion_indicator: choice(values.METHOD_INDICATORS) }),
    'authentication?': authenticationOutput,
  },
)
