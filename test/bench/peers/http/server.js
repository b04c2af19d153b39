/**
 * Fastify over SQLCipher (WAL, every commit synced): a kilobyte in, a kilobyte out, by id. `each` commits every request
 * by itself, as it is usually written; `grouped` commits what one turn of the event loop brought, the honest best.
 * No log record, no mask, no rules: it does less than ours.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3-multiple-ciphers'
import fastify from 'fastify'

const [commits = 'each', count = '1000', sample = '{}'] = process.argv.slice(2)
const place = mkdtempSync(join(tmpdir(), 'coffer-peer-'))
const database = new Database(join(place, 'peer.db'))
database.pragma("cipher='sqlcipher'")
database.pragma(`key="raw:${randomBytes(32).toString('hex')}"`)
database.pragma('journal_mode=WAL')
database.pragma('synchronous=FULL')
database.pragma('cache_size=-262144')
database.exec('create table tokens (n integer primary key, id text unique not null, body text not null)')
const insert = database.prepare('insert into tokens (id, body) values (?, ?)')
const select = database.prepare('select body from tokens where id = ?').pluck()

const ids = []
database.transaction(() => {
  for (let at = 0; at < Number(count); at++) {
    const id = randomUUID()
    insert.run(id, JSON.stringify({ id, ...JSON.parse(sample) }))
    ids.push(id)
  }
})()

let waiting = []
function commit(id, body) {
  if (commits === 'each') {
    insert.run(id, body)
    return Promise.resolve()
  }
  return new Promise((resolve) => {
    waiting.push({ id, body, resolve })
    if (waiting.length === 1) setImmediate(flush)
  })
}

function flush() {
  const group = waiting
  waiting = []
  database.transaction(() => {
    for (const { id, body } of group) insert.run(id, body)
  })()
  for (const { resolve } of group) resolve()
}

const app = fastify()
app.post('/tokens', async (request, reply) => {
  const id = randomUUID()
  const body = JSON.stringify({ id, ...request.body })
  await commit(id, body)
  return reply.code(201).type('application/json').send(body)
})
app.get('/tokens/:id', async (request, reply) => {
  const body = select.get(request.params.id)
  return body === undefined ? reply.code(404).send() : reply.type('application/json').send(body)
})
await app.listen({ port: 0, host: '127.0.0.1' })

process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send({ cpuMs: (user + system) / 1000, rssBytes: process.memoryUsage.rss() })
})
process.once('disconnect', () => {
  rmSync(place, { recursive: true, force: true })
  process.exit(0)
})
process.send({ port: app.server.address().port, key: 'none', ids })
