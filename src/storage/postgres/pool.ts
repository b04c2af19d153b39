/** Connections to PostgreSQL: a bounded pool, time limits for everything, and errors in the product's own terms. */
import pg, { type ClientConfig, type PoolClient, type QueryResult } from 'pg'
import findInPassFile, { type Asked } from 'pgpass'
import { CofferError } from '../../errors.js'
import type { Statement } from './query-sql.js'

/** Connections of one server; PostgreSQL allows 100 in all by default. */
const MOST_CONNECTIONS = 16
/** How long to wait for a connection, a free one included, and for the answer to a statement that is quick by itself. */
export const PATIENCE_MS = 1_700
/** For a statement that may take long for a reason, and for one that reads or empties a whole store. */
const LONG_PATIENCE_MS = 30_000
const WHOLE_PATIENCE_MS = 12 * 60 * 60_000
const IDLE_MS = 30_000
/** A store that answered this short a time ago is there; with the wait above, one that is away is known in under 2 s. */
const BUSY_MS = 250
/** How much earlier than asked for a timer may end. */
const TIMER_MS = 5
const RETRY_AFTER_SECONDS = 1
const ALIVE: Statement = { name: 'alive', text: 'select 1' }

/** The unit of work has met another, or what was remembered is out of date: it is run again from the start. */
export class Collision extends Error {
  readonly reason: 'conflict' | 'taken' | 'stale' | 'promote' | 'alone' | 'unsent'

  /**
   * `taken`: there is a row of this id, which perhaps another unit has just made. `promote`: it takes a transaction,
   * because it takes more than one statement. `alone`: one of those that it was committed with failed. `unsent`: it asks for
   * log entries of which some are in this process alone.
   */
  constructor(reason: Collision['reason']) {
    super('The unit of work is run again.')
    this.reason = reason
  }
}

/** Serialization failure, deadlock. */
const CONFLICTS = ['40001', '40P01']
/** A row, or a table, that there is already; or the type of a table that another process makes at this moment. */
const TAKEN = ['23505', '42P07', '42710']
/** Two rows of one moment, for whose order there is a constraint. */
const SAME_MOMENT = 'coffer_rows_seq'
/** Division by zero, which the check of what was remembered ends in where it does not hold. */
const OUT_OF_DATE = '22012'
/** A statement of a transaction in which another has failed. */
const ABORTED = '25P02'
const UNKNOWN_TABLE = '42P01'
/** Why a database that answers does not do what it is asked. */
const REASONS: Readonly<Record<string, string>> = {
  '25006': 'The database of the store is read-only',
  '53100': 'The disk of the database is full',
  '55P03': 'A table of the store is locked by another program',
}
/** Classes of errors of a database that is away, starting, stopping, full, overloaded or read-only. */
const AWAY = new Set(['08', '25', '53', '55', '57', '58', 'XX'])
/** Classes of errors of who may connect, and of what there is. */
const REFUSED: Readonly<Record<string, string>> = {
  '28': 'refused the user or the password',
  '3D': 'has no such database',
  '3F': 'has no such schema',
  '42': 'refused a statement: its user lacks a privilege, or it is not PostgreSQL',
}

function fieldOf(error: unknown, name: 'code' | 'constraint'): string {
  const value = (error as Record<string, unknown> | null)?.[name]
  return typeof value === 'string' ? value : ''
}

/** What a failed statement means. The message names no address and no text of the database, which may hold a secret. */
function translateError(error: unknown): Error {
  if (error instanceof CofferError || error instanceof Collision) return error
  const code = fieldOf(error, 'code')
  if (CONFLICTS.includes(code) || fieldOf(error, 'constraint') === SAME_MOMENT)
    return new Collision('conflict')
  if (TAKEN.includes(code)) return new Collision('taken')
  if (code === OUT_OF_DATE) return new Collision('stale')
  if (code === UNKNOWN_TABLE) return missing()
  const refused = error instanceof pg.DatabaseError ? REFUSED[code.slice(0, 2)] : undefined
  if (refused !== undefined) return new CofferError('storage_failed', `The store ${refused} (${code}).`)
  if (error instanceof pg.DatabaseError && !AWAY.has(code.slice(0, 2)))
    return new CofferError('internal', `The store does not take a statement (${code}).`)
  const reason = /^[A-Z0-9_]{1,40}$/.test(code) ? ` (${code})` : ''
  const message = REASONS[code] ?? 'The store does not answer'
  return new CofferError('unavailable', `${message}${reason}. Try again.`, {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
}

/** There is no vault in the store. */
export function missing(): CofferError {
  return new CofferError(
    'vault_missing',
    'There is no vault in this store. Create one: coffer init --store ADDRESS',
  )
}

/** Nothing that the tables hold is larger than a number can be exactly. */
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === pg.types.builtins.INT8 || oid === pg.types.builtins.NUMERIC
      ? Number
      : pg.types.getTypeParser(oid, format as 'text'),
} as NonNullable<ClientConfig['types']>

/** A client that looks into the `PGPASSFILE` itself: pg's own does so too, and warns that it will no longer. */
class Client extends pg.Client {
  constructor(config?: ClientConfig) {
    super(config)
    const given = this as { password?: unknown }
    given.password ??= async (asked: Asked) => {
      const found = await new Promise<string | undefined>((resolve) => findInPassFile(asked, resolve))
      if (found !== undefined) return found
      const advice = 'Name a file with it (--store-password-file, --to-password-file), or a PGPASSFILE.'
      throw new CofferError('storage_failed', `The store asks for a password. ${advice}`)
    }
  }
}

/** A connection that one unit of work has to itself. */
export class Connection {
  readonly #client: PoolClient
  readonly #answered: (ms: number) => void
  #isBroken = false

  constructor(client: PoolClient, answered: (ms: number) => void) {
    this.#client = client
    this.#answered = answered
  }

  /**
   * Sends the statements at once, and resolves with the results of all of them. @throws Collision, CofferError
   * `unavailable`
   */
  async send(statements: readonly Statement[]): Promise<QueryResult[]> {
    const since = performance.now()
    // A slow statement is waited for only as long as the store is there: one before it has to be answered soon.
    const sent = statements[0]?.isSlow ? [ALIVE, ...statements] : statements
    const settled = await Promise.allSettled(
      sent.map(({ isSlow = false, ...statement }) =>
        this.#client.query({
          ...statement,
          query_timeout: isSlow === 'whole' ? WHOLE_PATIENCE_MS : isSlow ? LONG_PATIENCE_MS : PATIENCE_MS,
        } as Statement),
      ),
    )
    const failed = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
    if (failed.length > 0) {
      const failure = translateError(failed.find((error) => fieldOf(error, 'code') !== ABORTED) ?? failed[0])
      this.#isBroken ||= !(failure instanceof Collision)
      throw failure
    }
    this.#answered(performance.now() - since)
    const results = settled.map((each) => (each as PromiseFulfilledResult<QueryResult>).value)
    return results.slice(sent.length - statements.length)
  }

  /** Gives the connection back. One that broke in the middle of something, or that failed, is closed. */
  release(isBroken: boolean): void {
    this.#client.release(isBroken || this.#isBroken)
  }
}

/** How long the store took to answer, ms: the last that were measured. */
const MEASURED = 1000

export class ConnectionPool {
  readonly #pool: pg.Pool
  readonly #times: number[] = []
  #next = 0
  #answeredAt = -BUSY_MS
  #ending: Promise<void> | undefined

  constructor(config: ClientConfig) {
    this.#pool = new pg.Pool({
      ...config,
      Client,
      types,
      pipeline: true,
      max: MOST_CONNECTIONS,
      connectionTimeoutMillis: PATIENCE_MS,
      idleTimeoutMillis: IDLE_MS,
      allowExitOnIdle: true,
      statement_timeout: LONG_PATIENCE_MS,
      idle_in_transaction_session_timeout: LONG_PATIENCE_MS,
      application_name: 'coffer',
      keepAlive: true,
      options: `${config.options ?? ''} -c default_transaction_isolation=serializable`,
    } as pg.PoolConfig)
    // A connection that breaks is replaced when one is needed; whoever is using it gets the error from its statement.
    this.#pool.on('error', () => undefined)
    this.#pool.on('connect', (client) => client.on('error', () => undefined))
  }

  /**
   * While all connections are in use and the store answers, this waits for one.
   * @throws CofferError `unavailable`, `storage_failed`
   */
  async connect(): Promise<Connection> {
    for (const since = performance.now(); ; ) {
      const asked = performance.now()
      try {
        return new Connection(await this.#pool.connect(), (ms) => this.#note(ms))
      } catch (error) {
        const now = performance.now()
        const isBusy = now - asked > PATIENCE_MS - TIMER_MS && now - this.#answeredAt < BUSY_MS
        if (!isBusy || now - since > LONG_PATIENCE_MS) throw translateError(error)
      }
    }
  }

  /** Runs `work` on a connection, which is closed if that fails for another reason than a collision. */
  async using<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.connect()
    let isBroken = true
    try {
      const result = await work(connection)
      isBroken = false
      return result
    } catch (error) {
      isBroken = !(error instanceof Collision)
      throw error
    } finally {
      connection.release(isBroken)
    }
  }

  /** One statement, in a transaction of its own. @throws Collision, CofferError `unavailable` */
  query(statement: Statement): Promise<QueryResult> {
    return this.using(async (connection) => (await connection.send([statement]))[0]!)
  }

  /** How long answers of the store take, of the last thousand; undefined before the first. */
  latency(): { p50_ms: number; p99_ms: number } | undefined {
    if (this.#times.length === 0) return undefined
    const sorted = this.#times.toSorted((one, other) => one - other)
    const at = (part: number) => Math.round(sorted[Math.floor((sorted.length - 1) * part)]! * 100) / 100
    return { p50_ms: at(0.5), p99_ms: at(0.99) }
  }

  close(): Promise<void> {
    this.#ending ??= this.#pool.end()
    return this.#ending
  }

  #note(ms: number): void {
    this.#answeredAt = performance.now()
    this.#times[this.#next] = ms
    this.#next = (this.#next + 1) % MEASURED
  }
}
