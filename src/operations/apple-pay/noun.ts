/** Coffer has no keys of Apple Pay, so each payload of the right form gets a made-up card. */

import { formatDate } from '../../domain/dates.js'
import { isObject } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { ApplePayRecord } from '../../domain/records/wallet-record.js'
import { CofferError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { requires, requiresAny } from '../../framework/declaration.js'
import { change, query } from '../../framework/operation.js'
import { object } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'
import {
  APPLE_PAY,
  applePayOutput,
  applePaySummary,
  requireApplePay,
  summarizeApplePay,
  viewApplePay,
} from '../wallets/apple-card.js'
import {
  declareCertificates,
  fingerprintFiles,
  merchantFile,
  merchantOfCertificate,
  processorFile,
} from '../wallets/certificates.js'
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
import { deregisterDomain, listDomains, registerDomain, replaceDomains } from './domains.js'
import { createSession } from './session.js'

const MAX_TRANSACTION_ID = 255
/** A card is deleted at the latest this long after it was unlinked. */
const UNLINKED_MS = 30 * 24 * 60 * 60 * 1000

const cardId = { type: 'string', description: 'The id of the card.' } as const
const transactionId = { type: 'string', maxLength: MAX_TRANSACTION_ID } as const
const EXAMPLE_PAYLOAD = {
  apple_payment_data: {
    paymentData: {
      version: 'EC_v1',
      data: 'bWFkZSB1cA==',
      signature: 'bWFkZSB1cA==',
      header: { ephemeralPublicKey: 'bWFkZSB1cA==' },
    },
  },
}
const CREATE = `echo '${JSON.stringify(EXAMPLE_PAYLOAD)}' | coffer apple-pay create`
const CREATED = `"$(${CREATE} --fields apple_pay.id -o value)"`
const CREATED_MPAN = `"$(coffer config set wallets.apple mpan > /dev/null && ${CREATE} --fields apple_pay.id -o value)"`

const createApplePay = change({
  name: 'apple-pay create',
  summary: 'Store a card for a payload of Apple Pay.',
  details:
    'The payload is not decrypted. Every payload of the version EC_v1 that has the right form gets a made-up card. The setting\n' +
    'wallets.apple decides the type of the card: dpan or mpan. With refuse, every payload is refused. The card expires at the\n' +
    'end of its last month, unless --expires-at is given.',
  access: requires('apple-pay:create'),
  route: 'POST /apple-pay',
  http: { status: 201 },
  log: { operation: 'create', message: 'Apple Pay created' },
  input: inputSchema(['apple_payment_data'], {
    apple_payment_data: {
      description: 'The payment token of Apple Pay.',
      sensitive: true,
      ...inputSchema(['paymentData'], {
        paymentData: {
          ...inputSchema([], {
            version: { type: 'string' },
            data: { type: 'string' },
            signature: { type: 'string' },
            header: inputSchema([], {
              ephemeralPublicKey: { type: 'string' },
              publicKeyHash: { type: 'string' },
              transactionId,
            }),
          }),
        },
        transactionIdentifier: transactionId,
      }),
    },
    expires_at: expiresAt,
    merchant_registration_id: merchantRegistrationId,
  }),
  output: object({ apple_pay: applePayOutput }),
  cli: { columns: ['apple_pay.id', 'apple_pay.type', 'apple_pay.expires_at'] },
  examples: [CREATE],
  check: async ({ expires_at }, tools) => ({ expires: await checkExpiry(expires_at, tools) }),
  async run(context, { apple_payment_data, merchant_registration_id }, { expires }) {
    await requireRegistration(context, 'apple', merchant_registration_id)
    const { paymentData, transactionIdentifier } = apple_payment_data
    const type = await requireType(context, paymentData)
    const { endOfCard, SIMULATED_AUTHENTICATION, simulateCard } = await import(
      '../../domain/wallets/simulated-card.js'
    )
    const card = simulateCard(context.now)
    const end = expires ?? endOfCard(card)
    const made = await makeRecord(context, await prepareCard(card, context), end)
    const record: ApplePayRecord = {
      ...made,
      type,
      status: 'active',
      authentication: SIMULATED_AUTHENTICATION,
      ...omitUndefined({ transaction_id: paymentData.header?.transactionId ?? transactionIdentifier }),
      payment_data_type: '3DSecure',
      device_manufacturer_identifier: '000000000000',
    }
    await context.store.insert(APPLE_PAY, context.caller.tenant, record, { fresh: true, expires: end })
    context.audit.record(APPLE_PAY, record.id)
    return { apple_pay: viewApplePay(record) }
  },
})

/** Returns the type of the made-up card. @throws CofferError `apple_pay_refused` */
async function requireType(context: Context, payload: object): Promise<ApplePayRecord['type']> {
  const { isApplePayload } = await import('../../domain/wallets/apple-payload.js')
  const type = await context.setting('wallets.apple')
  if (!isObject(payload) || !isApplePayload(payload))
    throw new CofferError(
      'apple_pay_refused',
      'Failed to process the Apple Pay token: paymentData must have the version EC_v1, and data, signature and header.ephemeralPublicKey as base64.',
    )
  if (type !== 'refuse') return type
  throw new CofferError(
    'apple_pay_refused',
    'Failed to process the Apple Pay token, because the setting wallets.apple is refuse. Undo: coffer config unset wallets.apple',
  )
}

const getApplePay = query({
  name: 'apple-pay get',
  summary: 'Get the card with this id.',
  details: 'Without the permission apple-pay:reveal, the number and the cryptogram are masked.',
  access: requiresAny('apple-pay:read', 'apple-pay:reveal'),
  route: 'GET /apple-pay/{id}',
  plaintext: 'masked',
  log: { operation: 'read', message: 'Apple Pay retrieved' },
  input: inputSchema(['id'], { id: cardId }),
  output: applePayOutput,
  examples: [`coffer apple-pay get ${CREATED}`],
  async run(context, { id }) {
    const record = await requireApplePay(context, id)
    const shown = decideShown(context.caller, 'apple-pay', record)
    context.audit.record(APPLE_PAY, id, undefined, shown)
    return viewApplePay(record, shown)
  },
})

const deleteApplePay = change({
  name: 'apple-pay delete',
  summary: 'Delete a card of Apple Pay permanently; its log stays.',
  access: requires('apple-pay:delete'),
  route: 'DELETE /apple-pay/{id}',
  log: { operation: 'delete', message: 'Apple Pay deleted' },
  input: inputSchema(['id'], { id: cardId }),
  output: applePaySummary,
  cli: { confirmation: 'This deletes the data of the card' },
  examples: [`coffer apple-pay delete ${CREATED} --yes`],
  async run(context, { id }) {
    const record = await requireApplePay(context, id)
    await context.store.remove(APPLE_PAY, context.caller.tenant, id)
    context.audit.record(APPLE_PAY, id)
    return summarizeApplePay(record, record.type === 'mpan' ? 'unlinked' : record.status)
  },
})

const unlinkApplePay = change({
  name: 'apple-pay unlink',
  summary:
    'Mark a card of a merchant (mpan) as unlinked. The card is deleted after 30 days, or when it expires.',
  access: requires('apple-pay:unlink'),
  route: 'POST /apple-pay/{id}/unlink',
  log: { operation: 'update', message: 'Apple Pay unlinked' },
  input: inputSchema(['id'], { id: cardId }),
  output: applePaySummary,
  examples: [`coffer apple-pay unlink ${CREATED_MPAN}`],
  async run(context, { id }) {
    const record = await requireApplePay(context, id)
    if (record.type !== 'mpan')
      throw new CofferError('unprocessable', 'Only a card of the type mpan can be unlinked.')
    if (record.status === 'unlinked') return summarizeApplePay(record, 'unlinked')
    const end = context.now + UNLINKED_MS
    const expires = Math.min(end, record.expires_at === undefined ? end : Date.parse(record.expires_at))
    const unlinked: ApplePayRecord = {
      ...record,
      status: 'unlinked',
      expires_at: formatDate(expires),
      modified_by: context.caller.actor.id,
      modified_at: context.date,
    }
    await context.store.replace(APPLE_PAY, context.caller.tenant, unlinked, { expires })
    context.audit.record(APPLE_PAY, id)
    return summarizeApplePay(unlinked, 'unlinked')
  },
})

const certificates = declareCertificates('apple')

const createCertificate = change({
  ...certificates.createDeclaration,
  summary: 'Register the certificates of a merchant of Apple Pay.',
  input: inputSchema(
    ['merchant_id', 'payment_processor_certificate_data', 'payment_processor_certificate_password'],
    {
      merchant_id: merchantOfCertificate,
      ...merchantFile,
      ...processorFile,
      domain: { type: 'string', description: 'The domain of the certificates.' },
    },
  ),
  async check({ domain, ...files }) {
    const { requireDomainName } = await import('./domain-set.js')
    if (domain !== undefined) requireDomainName('domain', domain)
    return fingerprintFiles(files)
  },
  run: (context, { merchant_id, domain }, fingerprints) =>
    certificates.add(context, merchant_id, { ...omitUndefined({ domain }), ...fingerprints }),
})

export const noun = {
  name: 'apple-pay',
  summary: 'Store cards of Apple Pay, and register domains',
  groups: {
    domain: 'Register domains for Apple Pay.',
    merchant: 'Register merchants of Apple Pay.',
    certificate: 'Register certificates of merchants of Apple Pay.',
  },
  operations: [
    createApplePay,
    getApplePay,
    deleteApplePay,
    unlinkApplePay,
    registerDomain,
    replaceDomains,
    listDomains,
    deregisterDomain,
    createSession,
    ...declareMerchants('apple'),
    createCertificate,
    certificates.get,
    certificates.delete,
  ],
}
