/** Coffer has no keys of Google Pay. Therefore encrypted payloads are refused, or get a made-up card. */

import { omitUndefined } from '../../domain/omit-undefined.js'
import type { TspDetails } from '../../domain/records/token-record.js'
import type { GooglePayRecord, WalletAuthentication } from '../../domain/records/wallet-record.js'
import type { TokenDraft } from '../../domain/token/token.js'
import { CofferError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { requires, requiresAny } from '../../framework/declaration.js'
import { change, query } from '../../framework/operation.js'
import { object } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'
import { addIntent } from '../intent/intents.js'
import { intentOutput, viewIntent } from '../token/token-attributes.js'
import {
  declareCertificates,
  fingerprintFiles,
  merchantFile,
  merchantOfCertificate,
} from '../wallets/certificates.js'
import {
  deletedGooglePay,
  GOOGLE_PAY,
  googlePayOutput,
  requireGooglePay,
  viewGooglePay,
} from '../wallets/google-card.js'
import type { GoogleCard } from '../wallets/google-payload.js'
import { declareMerchants } from '../wallets/merchants.js'
import {
  checkExpiry,
  decideShown,
  expiresAt,
  makeRecord,
  merchantRegistrationId,
  prepareCard,
  requireRegistration,
} from '../wallets/wallet-card.js'

const MESSAGE_ID_BYTES = 24

const cardId = { type: 'string', description: 'The id of the card.' } as const
const EXAMPLE_PAYLOAD = {
  google_payment_data: {
    protocolVersion: 'BasisTheory',
    signature: 'network_token',
    signedMessage: JSON.stringify({
      number: '4242424242424242',
      expiration_month: 12,
      expiration_year: 2040,
      cryptogram: 'AAAAAA=',
      eci_indicator: '7',
    }),
  },
}
const CREATE = `echo '${JSON.stringify(EXAMPLE_PAYLOAD)}' | coffer google-pay create`
const CREATED = `"$(${CREATE} --fields google_pay.id -o value)"`

const createGooglePay = change({
  name: 'google-pay create',
  summary: 'Store the card in a payload of Google Pay.',
  details:
    'A card with a cryptogram becomes a google_pay, and any other card becomes a token intent. By default, encrypted\n' +
    'payloads (ECv2) are refused. To get a made-up card instead: coffer config set wallets.google simulate (or pan_only). For\n' +
    'tests, a payload may contain the card: set protocolVersion to BasisTheory, signature to card or network_token, and\n' +
    'signedMessage to the text of a JSON object with number, expiration_month and expiration_year. A network_token also needs\n' +
    'cryptogram and eci_indicator.',
  access: requires('google-pay:create'),
  route: 'POST /google-pay',
  http: { status: 201 },
  log: { operation: 'create', message: 'Google Pay created' },
  input: inputSchema(['google_payment_data'], {
    google_payment_data: {
      description: 'The payment method token of Google Pay.',
      sensitive: true,
      ...inputSchema(['protocolVersion', 'signature', 'signedMessage'], {
        protocolVersion: { type: 'string' },
        signature: { type: 'string' },
        intermediateSigningKey: { type: 'object', additionalProperties: true },
        signedMessage: { type: 'string' },
      }),
    },
    expires_at: expiresAt,
    merchant_registration_id: merchantRegistrationId,
  }),
  output: object({ 'google_pay?': googlePayOutput, 'token_intent?': intentOutput }),
  cli: { columns: ['google_pay.id', 'token_intent.id'] },
  examples: [CREATE],
  async check({ google_payment_data = {}, expires_at }, tools) {
    const { readGoogleCard } = await import('../wallets/google-payload.js')
    return {
      expires: await checkExpiry(expires_at, tools),
      card: await readGoogleCard(google_payment_data, tools),
    }
  },
  async run(context, { merchant_registration_id }, { expires, card }) {
    await requireRegistration(context, 'google', merchant_registration_id)
    const { draft, authentication } = typeof card === 'object' ? card : await simulate(context, card)
    const details = describeDetails(context, authentication)
    if (authentication === undefined)
      return { token_intent: viewIntent(await createIntent(context, draft, details)) }
    const made = await makeRecord(context, draft, expires)
    const record: GooglePayRecord = { ...made, status: 'active', authentication, details }
    await context.store.insert(GOOGLE_PAY, context.caller.tenant, record, {
      fresh: true,
      ...omitUndefined({ expires }),
    })
    context.audit.record(GOOGLE_PAY, record.id)
    context.audit.emit({ type: 'google-pay.created', about: record })
    return { google_pay: viewGooglePay(record) }
  },
})

/** Makes up a card instead of the encrypted card. @throws CofferError `google_pay_refused` */
async function simulate(context: Context, form: 'well-formed' | 'malformed'): Promise<GoogleCard> {
  const mode = await context.setting('wallets.google')
  if (mode === 'refuse' || form === 'malformed') throw refusePayload()
  const { SIMULATED_AUTHENTICATION, simulateCard } = await import('../../domain/wallets/simulated-card.js')
  const draft = await prepareCard(simulateCard(context.now), context)
  return { draft, authentication: mode === 'simulate' ? SIMULATED_AUTHENTICATION : undefined }
}

function refusePayload(): CofferError {
  const message =
    'Failed to process the Google Pay token: Failed to decrypt Google payment request. This server has no keys of Google Pay. ' +
    'To get a made-up card instead: coffer config set wallets.google simulate'
  return new CofferError('google_pay_refused', message)
}

function describeDetails({ random }: Context, authentication: WalletAuthentication | undefined): TspDetails {
  const hasCryptogram = authentication !== undefined
  return {
    tsp: 'Google',
    auth_method: hasCryptogram ? 'CRYPTOGRAM_3DS' : 'PAN_ONLY',
    message_id: Buffer.from(random.bytes(MESSAGE_ID_BYTES)).toString('base64url'),
    eci_indicator: authentication?.eci_indicator ?? '',
    assurance_details: { account_verified: true, card_holder_authenticated: hasCryptogram },
  }
}

function createIntent(context: Context, draft: TokenDraft, details: TspDetails) {
  const entry = { operation: 'create', message: 'Token intent created' } as const
  return addIntent(context.as(context.caller, entry), draft, details)
}

const getGooglePay = query({
  name: 'google-pay get',
  summary: 'Get the card with this id.',
  details: 'Without the permission google-pay:reveal, the number and the cryptogram are masked.',
  access: requiresAny('google-pay:read', 'google-pay:reveal'),
  route: 'GET /google-pay/{id}',
  plaintext: 'masked',
  log: { operation: 'read', message: 'Google Pay retrieved' },
  input: inputSchema(['id'], { id: cardId }),
  output: googlePayOutput,
  examples: [`coffer google-pay get ${CREATED}`],
  async run(context, { id }) {
    const record = await requireGooglePay(context, id)
    const shown = decideShown(context.caller, 'google-pay', record)
    context.audit.record(GOOGLE_PAY, id, undefined, shown)
    context.audit.emit({ type: 'google-pay.retrieved', about: record })
    return viewGooglePay(record, shown)
  },
})

const deleteGooglePay = change({
  name: 'google-pay delete',
  summary: 'Delete a card of Google Pay permanently; its log stays.',
  access: requires('google-pay:delete'),
  route: 'DELETE /google-pay/{id}',
  log: { operation: 'delete', message: 'Google Pay deleted' },
  input: inputSchema(['id'], { id: cardId }),
  output: deletedGooglePay,
  cli: { confirmation: 'This deletes the data of the card' },
  examples: [`coffer google-pay delete ${CREATED} --yes`],
  async run(context, { id }) {
    const record = await requireGooglePay(context, id)
    await context.store.remove(GOOGLE_PAY, context.caller.tenant, id)
    context.audit.record(GOOGLE_PAY, id)
    context.audit.emit({ type: 'google-pay.deleted', about: record })
    const { tenant_id, status, expires_at } = record
    return { id, tenant_id, status, ...omitUndefined({ expires_at }) }
  },
})

const certificates = declareCertificates('google')

const createCertificate = change({
  ...certificates.createDeclaration,
  summary: 'Register the certificate of a merchant of Google Pay.',
  input: inputSchema(['merchant_id', 'merchant_certificate_data', 'merchant_certificate_password'], {
    merchant_id: merchantOfCertificate,
    ...merchantFile,
  }),
  check: fingerprintFiles,
  run: (context, { merchant_id }, fingerprints) => certificates.add(context, merchant_id, fingerprints),
})

export const noun = {
  name: 'google-pay',
  summary: 'Store cards of Google Pay, from payloads for tests',
  groups: {
    merchant: 'Register merchants of Google Pay.',
    certificate: 'Register certificates of merchants of Google Pay.',
  },
  operations: [
    createGooglePay,
    getGooglePay,
    deleteGooglePay,
    ...declareMerchants('google'),
    createCertificate,
    certificates.get,
    certificates.delete,
  ],
}
