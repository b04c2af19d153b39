/** Two servers share a vault in PostgreSQL: documents, wallets, merchants, network tokens and batch jobs. */
import t, { type Test } from 'tap'
import { CHUNK_BYTES } from '../../src/domain/document/chunks.js'
import { createVault, openVault } from '../../src/vault/open.js'
import { DOCUMENT, fillCardAreas, NUMBER, readCardAreas } from '../support/card-areas.js'
import { ask, createKey, locate } from '../support/vault.js'
import { AUTHENTICATION, CARD, CERTIFICATE_FILE, plainPayload } from '../support/wallet-payloads.js'
import { query, startPostgres } from './postgres-server.js'

const server = await startPostgres()
t.teardown(() => server.stop())

const CARD_DATA = { number: NUMBER, expiration_month: 10, expiration_year: 2031 }

async function openServers(t: Test) {
  const address = await server.createDatabase()
  const key = createKey()
  const one = await createVault(locate(address), 'first', key.create)
  const two = await openVault(locate(address), key.choose)
  t.teardown(() => Promise.all([one.close(), two.close()]))
  const { number: tenant } = await one.tenant()
  const count = async (kind: 'document' | 'document_chunk' | 'network_token') =>
    (await two.store.read((reader) => reader.find(kind, tenant, { page: 1, size: 1 }))).total
  return { address, one, two, count }
}

async function collect(content: AsyncIterable<Uint8Array>) {
  const pieces: Uint8Array[] = []
  for await (const piece of content) pieces.push(piece)
  return Buffer.concat(pieces)
}

t.test('everything that one server creates is complete on the other server', async (t) => {
  const { one, two } = await openServers(t)
  await fillCardAreas(one)
  const seen = await readCardAreas(two)
  t.strictSame(seen, await readCardAreas(one))
  t.match(seen, { contents: 1, networkTokens: { length: 1 }, merchants: [{ name: 'shop' }] })
})

t.test('a document is uploaded by both servers, downloaded from one, and deleted by the other', async (t) => {
  const { address, one, two, count } = await openServers(t)
  const part = (from: number, to?: number) => DOCUMENT.subarray(from, to)
  // Both servers append chunks, so the servers share the state of the upload.
  const { upload } = await ask(one, 'document append', { bytes: part(0, CHUNK_BYTES), is_last: false })
  await ask(two, 'document append', { upload, bytes: part(CHUNK_BYTES, 2 * CHUNK_BYTES), is_last: false })
  await ask(one, 'document append', { upload, bytes: part(2 * CHUNK_BYTES), is_last: true })
  const { id } = await ask(two, 'document create', { document: { upload }, content_type: 'text/plain' })
  for (const app of [one, two])
    t.ok((await collect(await ask(app, 'document data', { id }))).equals(DOCUMENT))
  const content = await ask(one, 'document data', { id })
  await ask(two, 'document delete', { id })
  await t.rejects(collect(content), { code: 'not_found' }, 'a deletion ends a download of the other server')
  for (const app of [one, two]) await t.rejects(ask(app, 'document get', { id }), { code: 'not_found' })
  await two.settle?.()
  t.strictSame([await count('document'), await count('document_chunk')], [0, 0])
  const { rows } = await query(address, 'select count(*)::int from coffer_rows where kind in (37, 48)', [])
  t.strictSame(rows, [{ count: 0 }], 'the database has no row of the document')
})

t.test(
  'a card gets one network token, even if both servers get requests for it at the same time',
  async (t) => {
    const { one, two, count } = await openServers(t)
    const { id: token_id } = await ask(one, 'token create', { type: 'card', data: CARD_DATA })
    for (const input of [{ data: CARD_DATA }, { token_id }]) {
      const made = await Promise.all(
        Array.from({ length: 10 }, (_, at) => ask(at % 2 === 0 ? one : two, 'network-token create', input)),
      )
      t.equal(new Set(made.map(({ id }) => id)).size, 1)
      const { id, par } = made[0]
      t.equal(await count('network_token'), 1)
      await ask(one, 'network-token suspend', { id })
      await t.rejects(ask(two, 'network-token cryptogram', { id }), { code: 'validation' })
      const both = await Promise.allSettled([one, two].map((app) => ask(app, 'network-token resume', { id })))
      t.strictSame(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], 'only one resumes it')
      t.match(await ask(two, 'network-token cryptogram', { id }), { eci: '07' })
      await ask(one, 'network-token delete', { id })
      await t.rejects(ask(two, 'network-token get', { id }), { code: 'not_found' })
      const again = await ask(two, 'network-token create', { data: CARD_DATA })
      t.equal(again.par, par, 'the keys of the tenant are the same on both servers')
      t.not(again.id, id)
      await ask(two, 'network-token delete', { id: again.id })
    }
  },
)

t.test('merchants, certificates and wallet cards of one server can be used on the other', async (t) => {
  const { one, two } = await openServers(t)
  const merchant_identifier = 'merchant.com.example'
  const { id: merchant_id } = await ask(one, 'google-pay merchant create', { merchant_identifier })
  const file = { merchant_certificate_data: CERTIFICATE_FILE, merchant_certificate_password: 'made up' }
  const certificate = await ask(two, 'google-pay certificate create', { merchant_id, ...file })
  t.strictSame(await ask(one, 'google-pay certificate get', { merchant_id, id: certificate.id }), certificate)
  const payload = plainPayload('network_token', { ...CARD, ...AUTHENTICATION })
  const { google_pay } = await ask(one, 'google-pay create', payload)
  t.match(await ask(two, 'google-pay get', { id: google_pay.id }), { data: CARD })
  await ask(two, 'google-pay delete', { id: google_pay.id })
  await t.rejects(ask(one, 'google-pay get', { id: google_pay.id }), { code: 'not_found' })
  await ask(one, 'google-pay merchant delete', { id: merchant_id })
  await t.rejects(ask(two, 'google-pay certificate get', { merchant_id, id: certificate.id }), {
    code: 'not_found',
  })
  const names = await Promise.allSettled(
    [one, two].map((app) => ask(app, 'tenant merchant create', { name: 'shop' })),
  )
  t.strictSame(names.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], 'a name is unique')
})
