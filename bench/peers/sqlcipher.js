/**
 * Tokens, metadata and audit rows in SQLite, plain or as SQLCipher: WAL, a sync for every commit, a cache of 256 MB.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3-multiple-ciphers'

const READ_AUDIT_MS = 50

export function openTables(place, isSealed) {
  const database = new Database(join(place, 'peer.db'))
  if (isSealed) {
    database.pragma("cipher='sqlcipher'")
    // The key is raw, because otherwise each opening would derive the key from a passphrase.
    database.pragma(`key="raw:${randomBytes(32).toString('hex')}"`)
  }
  database.pragma('journal_mode=WAL')
  database.pragma('synchronous=FULL')
  database.pragma('cache_size=-262144')
  // A checkpoint runs after 64 MB of the write-ahead log. With the default of 4 MB, a quarter of a POST's CPU time
  // goes into checkpoints, which encrypt every page again.
  database.pragma('wal_autocheckpoint=16384')
  database.exec(`
    create table tokens (n integer primary key, id text unique not null, fingerprint text not null,
      containers text not null, masked text, body text not null);
    create index tokens_fingerprint on tokens (fingerprint);
    create table metadata (name text, value text, token integer, primary key (name, value, token)) without rowid;
    create table audit (n integer primary key, at integer, operation text, entity_type text, entity_id text,
      actor_type text, actor text, trace text, message text);
    create index audit_entity on audit (entity_id);`)
  const token = database.prepare(
    'insert into tokens (id, fingerprint, containers, masked, body) values (@id, @fingerprint, @containers, @masked, @body)',
  )
  const entry = database.prepare('insert into metadata (name, value, token) values (?, ?, ?)')
  const audit = database.prepare(
    `insert into audit (at, operation, entity_type, entity_id, actor_type, actor, trace, message)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  /** One transaction with new tokens, their audit rows, and audit rows of reads. */
  const commit = database.transaction((created, notes) => {
    for (const each of created) {
      const { lastInsertRowid } = token.run(each.row)
      for (const [name, value] of each.metadata) entry.run(name, value, lastInsertRowid)
      audit.run(each.audit)
    }
    for (const note of notes) audit.run(note)
  })
  const select = database.prepare('select containers, masked, body from tokens where id = ?')
  return { commit, find: (id) => select.get(id), close: () => database.close() }
}

/**
 * Opens a store for the server of the benchmark. All requests of one turn of the event loop are committed together
 * and then answered.
 */
export function openStore(place) {
  const { commit, find, close } = openTables(place, true)
  let created = []
  let notes = []
  let timer
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    const [group, read] = [created, notes]
    created = []
    notes = []
    commit(group, read)
    for (const { resolve } of group) resolve()
  }
  return {
    find,
    close,
    create: (rows) =>
      new Promise((resolve) => {
        created.push({ ...rows, resolve })
        if (created.length === 1) setImmediate(flush)
      }),
    note(row) {
      notes.push(row)
      timer ??= setTimeout(flush, READ_AUDIT_MS)
    },
    /** The store has no process of its own. */
    cpuMs: () => 0,
  }
}
