import pg, { type ClientConfig, type QueryResult } from 'pg'
import findInPassFile, { type Asked } from 'pgpass'
import { CofferError, codeOf } from '../../errors.js'
import { Collision } from './attempt.js'

export interface Statement {
  name?: string
  text: string
  values?: unknown[]
  isSlow?: boolean
}

export const COMMIT: Statement = { text: 'commit' }
export const ROLLBACK: Statement = { text: 'rollback' }
export const SNAPSHOT = 'begin isolation level repeatable read read only'
const ALIVE: Statement = { name: 'alive', text: 'select 1' }
const UNLIMITED = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'].map(
  (name): Statement => ({ text: `set local ${name} = 0` }),
)

/** The limit for opening a connection, and for the answer to a quick statement, ms. */
export const TIMEOUT_MS = 1_700
const LONG_TIMEOUT_MS = 30_000
const WHOLE_STORE_TIMEOUT_MS = 12 * 60 * 60_000

/**
 * The steps that PostgreSQL's planner must avoid if possible. Without these steps, the planner reads an index in order,
 * independently of the statistics of the tables.
 */
const AVOIDED = ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin', 'hashagg', 'sort']
const SETTINGS = [
  ...AVOIDED.map((name) => `enable_${name}=off`),
  'jit=off',
  // With this option, PostgreSQL plans each prepared statement once.
  'plan_cache_mode=force_generic_plan',
  'default_transaction_isolation=read\\ committed',
  // In ms. The limit exceeds 1 s, because PostgreSQL looks for a deadlock only after 1 s.
  'lock_timeout=1500',
]

/** SQLSTATEs: serialization failure, deadlock, division by zero (a refusal by `write-sql.ts`), existing table. */
const CONFLICT = /^(40001|40P01|22012|42P07|42710)/
/**
 * The messages for errors of PostgreSQL. Each key is an SQLSTATE, or the first two characters of an SQLSTATE, which
 * denote its class.
 */
const MESSAGES: Readonly<Record<string, string>> = {
  '25006': 'The database of the store is read-only',
  '53100': 'The disk of the database is full',
  '55P03': 'A table of the store is locked, by `coffer vault rekey` or another program',
  '28': 'The store refused the user or the password',
  '3D': 'The store has no such database',
  '3F': 'The store has no such schema',
  '42': 'The store refused a statement: the user lacks a privilege, or the database is not PostgreSQL',
}
/** SQLSTATE classes of a database that is unreachable, starting, stopping, full, overloaded or read-only. */
const AWAY = /^(08|25|53|55|57|58|XX)/

type Sent = pg.QueryConfig & { query_timeout: number }

/** The message contains no address and no text of the database, because both may contain a secret. */
function translateError(error: unknown): Error {
  if (error instanceof CofferError || error instanceof Collision) return error
  const code = codeOf(error)
  const isAnswer = error instanceof pg.DatabaseError
  if (CONFLICT.test(code)) return new Collision('conflict')
  if (code === '23505') return new Collision('taken')
  if (code === '42P01') return missing()
  const message = MESSAGES[code] ?? MESSAGES[code.slice(0, 2)]
  const shown = /^[A-Z0-9_]{1,40}$/.test(code) ? ` (${code}).` : '.'
  if (!isAnswer || AWAY.test(code)) {
    const text = `${message ?? 'The store does not answer'}${shown} Try again.`
    return new CofferError('unavailable', text, { retryAfterSeconds: 1 })
  }
  if (message !== undefined) return new CofferError('storage_failed', message + shown)
  return new CofferError('internal', `PostgreSQL rejected a statement${shown}`)
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof CofferError && error.code === 'unavailable'
}

export function missing(): CofferError {
  return new CofferError(
    'vault_missing',
    'There is no vault in this store. Create one: coffer init --store ADDRESS',
  )
}

const { INT8, NUMERIC } = pg.types.builtins
/** Decodes 8-byte integers as numbers, because JavaScript can represent every number in the tables. */
const types = {
  getTypeParser: (oid: number, format?: 'text') =>
    oid === INT8 || oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format),
} as NonNullable<ClientConfig['types']>

export class Connection extends pg.Client {
  timeoutMs = TIMEOUT_MS
  isBroken = false
  declare release: (isBroken: boolean) => void

  constructor(config?: ClientConfig) {
    // A spread does not copy the password, because the pool makes it non-enumerable.
    super({ ...config, password: config?.password, connectionTimeoutMillis: TIMEOUT_MS } as ClientConfig)
    // Coffer reads `PGPASSFILE` itself, because `pg` warns that its next version will not read this file.
    const given = this as { password?: unknown }
    given.password ??= (asked: Asked) =>
      new Promise((resolve, reject) =>
        findInPassFile(asked, (found) => {
          const advice =
            'Name a file that contains it (--store-password-file, --to-password-file), or set PGPASSFILE.'
          if (found !== undefined) resolve(found)
          else reject(new CofferError('storage_failed', `The store asks for a password. ${advice}`))
        }),
      )
  }

  /** Sends all statements without waiting for answers in between. @throws Collision, CofferError */
  async send(statements: readonly Statement[]): Promise<QueryResult[]> {
    const isSlow = statements.some((each) => each.isSlow)
    const query_timeout = Math.max(this.timeoutMs, isSlow ? LONG_TIMEOUT_MS : 0)
    // A slow statement gets the long limit only if the store answers this quick statement within the usual limit.
    const answers = isSlow ? [this.query({ ...ALIVE, query_timeout: this.timeoutMs } as Sent)] : []
    for (const { isSlow: _, ...statement } of statements)
      answers.push(this.query({ ...statement, query_timeout } as Sent))
    const settled = await Promise.allSettled(answers)
    const errors = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
    if (errors.length === 0) return (await Promise.all(answers)).slice(isSlow ? 1 : 0)
    const failure = translateError(errors[0])
    this.isBroken ||= !(failure instanceof Collision)
    throw failure
  }
}

export class ConnectionPool {
  readonly #pool: pg.Pool
  #ending: Promise<void> | undefined

  constructor(config: ClientConfig) {
    this.#pool = new pg.Pool({
      ...config,
      Client: Connection,
      types,
      pipeline: true,
      // By default, PostgreSQL allows 100 connections in total.
      max: 20,
      idleTimeoutMillis: LONG_TIMEOUT_MS,
      allowExitOnIdle: true,
      statement_timeout: LONG_TIMEOUT_MS,
      idle_in_transaction_session_timeout: LONG_TIMEOUT_MS,
      application_name: 'coffer',
      keepAlive: true,
      options: [config.options ?? '', ...SETTINGS].join(' -c '),
    } as pg.PoolConfig)
    // These errors need no handling: statements on a broken connection fail, and the pool opens new connections.
    this.#pool.on('error', () => undefined)
    this.#pool.on('connect', (client) => client.on('error', () => undefined))
  }

  async connect(): Promise<Connection> {
    const connecting = this.#pool.connect() as unknown as Promise<Connection>
    return connecting.catch((error) => Promise.reject(translateError(error)))
  }

  /** Runs `work` on a connection. If `work` fails for another reason than a collision, the connection is closed. */
  async using<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.connect()
    try {
      return await work(connection)
    } catch (error) {
      connection.isBroken ||= !(error instanceof Collision)
      throw error
    } finally {
      connection.release(connection.isBroken)
    }
  }

  query(statement: Statement): Promise<QueryResult> {
    return this.using(async (connection) => (await connection.send([statement]))[0]!)
  }

  /** Runs one transaction over the whole store, without the usual time limits. */
  transact<T>(begin: 'begin' | typeof SNAPSHOT, work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.using(async (connection) => {
      await connection.send([{ text: begin }, ...UNLIMITED])
      connection.timeoutMs = WHOLE_STORE_TIMEOUT_MS
      try {
        const result = await work(connection)
        const committing = connection.send([COMMIT])
        // The read is complete, even if the store ended the session while `work` checked the copy.
        await (begin === SNAPSHOT ? committing.catch(() => undefined) : committing)
        connection.timeoutMs = TIMEOUT_MS
        return result
      } catch (error) {
        // Closing the connection rolls the transaction back.
        connection.isBroken = true
        throw error
      }
    })
  }

  close(): Promise<void> {
    this.#ending ??= this.#pool.end()
    return this.#ending
  }
}
