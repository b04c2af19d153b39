/** Command lines for help. Each command line first creates the records that it needs. */

const CARD = `echo '{"type":"card","data":{"number":"4000020000000000"}}' | coffer token create -o id`

export const CREATE_EXAMPLE = `coffer 3ds create --type merchant --token-id "$(${CARD})"`

const APP =
  `{"sdk_transaction_id":"b2385523-a66c-4907-ac3c-91848e8c0067","sdk_application_id":"df898f15-b3b4-4a1e-a1d9-2a1a3b0e5b5f",` +
  `"sdk_encryption_data":"eyJhbGciOiJSU0EtT0FFUCJ9","sdk_ephemeral_public_key":"{}","sdk_max_timeout":"05",` +
  `"sdk_reference_number":"3DS_LOA_SDK","sdk_render_options":{"sdk_interface":"native","sdk_ui_type":["text"]}}`

export const UPDATE_EXAMPLE = `coffer 3ds update "$(coffer 3ds create --device app --token-id "$(${CARD})" -o id)" --device-info '${APP}'`

export const AUTHENTICATE_EXAMPLE =
  `coffer 3ds authenticate "$(${CREATE_EXAMPLE} -o id)" --authentication-category non-payment --authentication-type add-card ` +
  `--decoupled-challenge-max-time 10 --cardholder-info '{"name":"Ada","email":"ada@example.com"}'`

/** The id of a session whose challenge is pending. */
export const CHALLENGED = `"$(${AUTHENTICATE_EXAMPLE} --fields session_id -o value)"`

export const GET_EXAMPLE = `coffer 3ds get "$(${CREATE_EXAMPLE} -o id)"`

export const DECIDE_EXAMPLE = `coffer 3ds decide ${CHALLENGED} --outcome failed`

export const RESULT_EXAMPLE = `coffer 3ds result "$(${DECIDE_EXAMPLE} --fields id -o value)"`
