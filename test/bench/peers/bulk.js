/**
 * Rows written in bulk into SQLite, plain or as SQLCipher, one transaction and one sync a unit. No log record, no look-up
 * but by id: it does less than ours. Says how many seconds it took.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3-multiple-ciphers'

const [kind = 'sqlite', count = '1000', unit = '1000', body = '{}'] = process.argv.slice(2)
const place = mkdtempSync(join(tmpdir(), 'coffer-peer-'))
const database = new Database(join(place, 'peer.db'))
if (kind === 'sqlcipher') {
  database.pragma("cipher='sqlcipher'")
  // Raw: otherwise opening would derive the key from a passphrase.
  database.pragma(`key="raw:${randomBytes(32).toString('hex')}"`)
}
database.pragma('journal_mode=WAL')
database.pragma('synchronous=FULL')
database.pragma('cache_size=-262144')
database.exec('create table tokens (n integer primary key, id text unique not null, body text not null)')
const insert = database.prepare('insert into tokens (id, body) values (?, ?)')
const insertUnit = database.transaction((ids) => {
  for (const id of ids) insert.run(id, body)
})

let seconds = 0
for (let done = 0; done < Number(count); done += Number(unit)) {
  const ids = Array.from({ length: Math.min(Number(unit), Number(count) - done) }, () => randomUUID())
  const start = performance.now()
  insertUnit(ids)
  seconds += (performance.now() - start) / 1000
}
database.close()
rmSync(place, { recursive: true, force: true })
process.send({ seconds })
process.disconnect()
