/** Records about cards: documents, network tokens, wallets, merchants, the security contact and a batch job. */
import { CHUNK_BYTES } from '../../src/domain/document/chunks.js'
import type { Kind } from '../../src/domain/records/records.js'
import { readAll } from '../../src/storage/store.js'
import type { App } from '../../src/vault/app.js'
import { ask } from './vault.js'
import { AUTHENTICATION, applePayload, CARD, CERTIFICATE_FILE, plainPayload } from './wallet-payloads.js'

/** Three chunks, the last of which has one byte. */
export const DOCUMENT = new Uint8Array(2 * CHUNK_BYTES + 1).map((_, at) => at % 251)
export const NUMBER = '4111111111111111'

const KINDS = [
  'document',
  'document_chunk',
  'network_token',
  'google_pay',
  'apple_pay',
  'wallet_merchant',
  'wallet_certificate',
  'wallet_domains',
  'merchant',
  'account_updater_job',
] as const satisfies Kind[]

/** Creates at least one record of each kind in the oldest tenant. */
export async function fillCardAreas(app: App): Promise<void> {
  const merchant_identifier = 'merchant.com.example'
  await ask(app, 'document create', { document: DOCUMENT, metadata: { 'attribute 1': 'é' } })
  await ask(app, 'network-token create', {
    data: { number: NUMBER, expiration_month: 10, expiration_year: 2031 },
  })
  await ask(app, 'google-pay create', plainPayload('network_token', { ...CARD, ...AUTHENTICATION }))
  await ask(app, 'apple-pay create', applePayload())
  for (const [wallet, file] of [
    ['google', 'merchant'],
    ['apple', 'payment_processor'],
  ] as const) {
    const { id: merchant_id } = await ask(app, `${wallet}-pay merchant create`, { merchant_identifier })
    const data = {
      [`${file}_certificate_data`]: CERTIFICATE_FILE,
      [`${file}_certificate_password`]: 'made up',
    }
    await ask(app, `${wallet}-pay certificate create`, { merchant_id, ...data })
  }
  await ask(app, 'apple-pay domain register', { domain: 'shop.example' })
  await ask(app, 'tenant merchant create', { name: 'shop', details: { merchant: { descriptor: 'SHOP' } } })
  await ask(app, 'tenant set-security-contact', { email: 'security@shop.example' })
  await ask(app, 'updater job create')
}

/** Returns all records of these areas as they are stored, and the results of the operations that read them. */
export async function readCardAreas(app: App) {
  const { number } = await app.tenant()
  const records: Record<string, object[]> = {}
  for (const kind of KINDS) {
    const found: { id: string }[] = await readAll(app.store, kind, number)
    if (found.length === 0) throw new Error(`There is no record of the kind ${kind}.`)
    records[kind] = found
  }
  const get = (operation: string, kind: (typeof KINDS)[number]) =>
    Promise.all(records[kind]!.map((record) => ask(app, operation, { id: (record as { id: string }).id })))
  const read = async (id: string) => {
    const pieces: Uint8Array[] = []
    for await (const piece of await ask(app, 'document data', { id })) pieces.push(piece)
    return Buffer.concat(pieces)
  }
  const documents = await readAll(app.store, 'document', number)
  const contents = await Promise.all(documents.map(({ id }) => read(id)))
  for (const content of contents)
    if (!content.equals(DOCUMENT)) throw new Error('The content of a document has changed.')
  return {
    records,
    contents: contents.length,
    networkTokens: await get('network-token get', 'network_token'),
    googlePay: await get('google-pay get', 'google_pay'),
    applePay: await get('apple-pay get', 'apple_pay'),
    jobs: await get('updater job get', 'account_updater_job'),
    domains: await ask(app, 'apple-pay domain list'),
    merchants: (await ask(app, 'tenant merchant list')).data,
    contact: await ask(app, 'tenant security-contact'),
  }
}
