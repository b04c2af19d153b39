/** Reads all rows of a store in one snapshot, fills an empty store with rows, or reseals every row with new keys. */
import type { Mac, RandomSource } from '../../crypto/ports.js'
import { CofferError, conflict } from '../../errors.js'
import type { PendingEntries, Resealed, Row, VaultRows } from '../engine.js'
import { type Header, headerText } from '../vault-file.js'
import {
  copyAndVerify,
  inBatches,
  type Progress,
  plainRow,
  type RowChecksum,
  type RowTarget,
} from '../vault-rows.js'
import { type Connection, type ConnectionPool, SNAPSHOT, type Statement } from './pool.js'
import { READ_STATE, ROW } from './read-sql.js'
import { eachKey, keyAt } from './row-keys.js'
import { alreadyThere, createTables, EXCLUDE_OTHERS, HIGHEST_REV, headless, randomNumber } from './tables.js'
import { createChange, INSERT, writeStatements } from './write-sql.js'

const ROWS_AT_ONCE = 500
const NO_CHANGES = { changes: new Map() }
const ANY_ROW = { text: 'select 1 from coffer_rows limit 1' }
const COUNT_ROWS = { text: 'select count(*) as rows from coffer_rows' }
const READ_PENDING = {
  text: 'select id, tenant, chain, written, sealed from coffer_waiting order by written, id',
}
const CLEAR = ['rows', 'keys', 'waiting', 'chains'].map((table) => ({ text: `delete from coffer_${table}` }))
const IS_KEY = `k.tenant = r.tenant and k.kind = r.kind and k.seq = r.seq and k.key = ${keyAt('r.keys')}`
/** The table of keys has all keys of a row except the first. */
const KEYS = eachKey('r.keys', 2)
/** The `limit` clauses make the planner look up rows one by one, independently of the statistics of the tables. */
const COUNT_WRONG_KEYS =
  `select (select count(*) from coffer_rows r, ${KEYS}` +
  ` where (select 1 from coffer_keys k where ${IS_KEY} limit 1) is null) + (select count(*) from coffer_keys k` +
  ` where (select 1 from coffer_rows r, ${KEYS} where ${IS_KEY} limit 1) is null) as wrong`

export function withSnapshot<T>(
  pool: ConnectionPool,
  work: (found: VaultRows, connection: Connection) => Promise<T>,
): Promise<T> {
  return pool.transact(SNAPSHOT, async (connection) => {
    const [state, counted, pending] = await connection.send([READ_STATE, COUNT_ROWS, READ_PENDING])
    const { times } = state!.rows[0]
    const rows = () => eachRow(connection)
    return work({ times, count: counted!.rows[0].rows, pending: pending!.rows, rows }, connection)
  })
}

/**
 * Yields all rows in order, as they were when the cursor was declared. The statements in `then` are sent after the
 * declaration, so these statements do not affect the yielded rows.
 */
async function* eachRow(connection: Connection, where = '', then: readonly Statement[] = []) {
  const select = `select ${ROW}, r.sealed, r.keys from coffer_rows r ${where} order by tenant, kind, seq`
  await connection.send([{ text: `declare copied cursor for ${select}` }, ...then])
  try {
    for (let isLast = false; !isLast; ) {
      const [found] = await connection.send([{ text: `fetch ${ROWS_AT_ONCE} from copied` }])
      for (const row of found!.rows) yield plainRow(row)
      isLast = found!.rows.length < ROWS_AT_ONCE
    }
  } finally {
    await connection.send([{ text: 'close copied' }]).catch(() => undefined)
  }
}

/** Returns how many keys exist only in the rows or only in the table of keys. 0: the rows and the table match. */
export async function countWrongKeys(connection: Connection): Promise<number> {
  const [counted] = await connection.send([{ text: COUNT_WRONG_KEYS }])
  return counted!.rows[0].wrong
}

function createTarget(connection: Connection): RowTarget {
  return {
    async put(rows) {
      let last = 1
      for await (const batch of inBatches(rows, { rows: ROWS_AT_ONCE, bytes: Number.POSITIVE_INFINITY })) {
        const changes = batch.map((row) => createChange(INSERT, row, 0, row))
        await connection.send(writeStatements([{ changes: new Map(changes.entries()) }]))
        last = Math.max(last, ...batch.map(({ seq }) => seq))
      }
      await connection.send([{ text: "select setval('coffer_seq', $1)", values: [last] }])
    },
    async *read() {
      yield* eachRow(connection)
      const text = 'The copied keys differ from the keys that were sent. Try again.'
      if ((await countWrongKeys(connection)) > 0) throw new CofferError('storage_failed', text)
    },
  }
}

/**
 * Fills an empty store with the rows of another vault, in one transaction. Until the commit, the store has no vault.
 * Requires: the given rows have their keys. @throws CofferError `conflict`, `vault_damaged`, `storage_failed`,
 * `unavailable`
 */
export async function fillStore(
  pool: ConnectionPool,
  source: VaultRows,
  options: { header: Header; random: RandomSource; mac: Mac; progress: Progress },
): Promise<RowChecksum> {
  const { header, random, mac, progress } = options
  await createTables(pool)
  return pool.transact('begin', async (connection) => {
    const values = [headerText(header), randomNumber(random, HIGHEST_REV), source.times]
    const text = 'insert into coffer_state values (1, $1, $2, 0, $3) on conflict do nothing'
    const [inserted, present] = await connection.send([{ text, values }, ANY_ROW])
    if (inserted!.rowCount !== 1) throw alreadyThere()
    if (present!.rows.length > 0) throw headless()
    await connection.send(CLEAR)
    const arrived = await copyAndVerify(source, createTarget(connection), mac, progress)
    await connection.send(writeStatements([NO_CHANGES], source.pending))
    return arrived
  })
}

interface RekeyOptions extends Record<'present' | 'next', Header> {
  mac: Mac
  /** Receives the vault's own rows (tenant 0). Returns a function that reseals any row. */
  prepare(own: AsyncIterable<Row>): Promise<(row: Row) => Promise<Resealed>>
  resealPending(pending: PendingEntries): PendingEntries
  progress: Progress
}

/**
 * Reseals every row, in one transaction that excludes all other reads and writes. After the rekey, the requests of
 * every process that has the vault open are refused. @throws CofferError `conflict` if the header in the store is not
 * `present`, `vault_damaged`
 */
export function rekeyStore(pool: ConnectionPool, options: RekeyOptions): Promise<void> {
  const { present, next, mac, prepare, resealPending, progress } = options
  return pool.transact('begin', async (connection) => {
    const text =
      'update coffer_state set header = $1, generation = generation + 1 where id = 1 and header = $2'
    const values = [headerText(next), headerText(present)]
    const results = await connection.send([...EXCLUDE_OTHERS, { text, values }, COUNT_ROWS, READ_PENDING])
    const [updated, counted, pending] = results.slice(-3)
    if (updated!.rowCount !== 1) throw conflict('Another process changed the keys of this vault. Try again.')
    const reseal = await prepare(eachRow(connection, 'where tenant = 0'))
    async function* rows(): AsyncGenerator<Row> {
      for await (const row of eachRow(connection, '', CLEAR)) yield { ...row, ...(await reseal(row)) }
    }
    await copyAndVerify({ count: counted!.rows[0].rows, rows }, createTarget(connection), mac, progress)
    await connection.send(writeStatements([NO_CHANGES], pending!.rows.map(resealPending)))
  })
}
