/**
 * Seals all rows of a store anew, in one transaction: until its commit the store is as it was. What stands in the place of
 * the header meanwhile keeps everybody else out, so nothing is written that the transaction does not see.
 */
import type { Mac, RandomSource } from '../../crypto/ports.js'
import { type CofferError, conflict } from '../../errors.js'
import type { PendingEntries, Resealed, Row } from '../engine.js'
import { type Header, headerText } from '../vault-file.js'
import { copyAndVerify, type Progress } from '../vault-rows.js'
import { storeTarget } from './fill.js'
import type { Connection, ConnectionPool } from './pool.js'
import { BEGIN, COMMIT, type Place, ROLLBACK, type Statement, UNLIMITED } from './query-sql.js'
import { COUNT_ROWS, eachRow, READ_WAITING } from './snapshot.js'
import { again, unfinishedRekey } from './tables.js'
import { insertStatement } from './write-sql.js'

const LOCK_HEADER = { text: 'select header from coffer_state where id = 1 for update', isSlow: true }
/** A process that sees another generation reads everything anew. */
const SET_HEADER = 'update coffer_state set header = $1, generation = generation + 1 where id = 1'

export interface RekeyOptions {
  present: Header
  next: Header
  /** Keyed with the new keys. */
  mac: Mac
  random: RandomSource
  /** Given the rows that are of no tenant, and tenants' own records; gives what seals a row anew. */
  prepare(rows: AsyncIterable<Row>): Promise<(row: Row) => Promise<Resealed>>
  /** Seals log entries anew that are in no row yet. */
  resealPending(pending: PendingEntries): PendingEntries
  progress: Progress
}

/**
 * On failure the vault is as it was, and servers go on; where the process was killed, it takes another call, whose keys may
 * be others. @throws CofferError `conflict`, `vault_damaged`, `unavailable`
 */
export async function rekeyStore(pool: ConnectionPool, options: RekeyOptions): Promise<void> {
  const present = headerText(options.present)
  const mark = unfinishedRekey(options.present, options.random)
  const isPresent = "right(header, length($2)) = $2 and (header = $2 or header like 'rekeying %')"
  const begin = { text: `${SET_HEADER} and ${isPresent}`, values: [mark, present] }
  if ((await again(() => pool.query(begin))).rowCount !== 1) throw changedMeanwhile()
  try {
    await again(() => pool.using((connection) => rekeyRows(connection, mark, options)))
  } catch (error) {
    const end = { text: `${SET_HEADER} and header = $2`, values: [present, mark] }
    await again(() => pool.query(end)).catch(() => undefined)
    throw error
  }
}

async function rekeyRows(connection: Connection, mark: string, options: RekeyOptions): Promise<void> {
  const { next, mac, prepare, resealPending, progress } = options
  try {
    const begun = await connection.send([BEGIN, ...UNLIMITED, LOCK_HEADER, COUNT_ROWS])
    const [header, counted] = begun.slice(-2)
    if (header!.rows[0]?.header !== mark) throw changedMeanwhile()
    const reseal = await prepare(eachOwnRow(connection))
    await connection.send([{ text: 'delete from coffer_keys', isSlow: 'whole' }])
    let before: Place = { tenant: -1, kind: -1, seq: -1 }
    const target = storeTarget(connection, (batch) => {
      const statement = deleteStatement(before, batch.at(-1)!)
      before = batch.at(-1)!
      return [statement]
    })
    async function* rows(): AsyncGenerator<Row> {
      for await (const { row } of eachRow(connection)) yield { ...row, ...(await reseal(row)) }
    }
    await copyAndVerify({ count: counted!.rows[0].rows, rows }, target, mac, progress)
    const [pending] = await connection.send([READ_WAITING])
    const news = insertStatement({ rows: [], waiting: pending!.rows.map(resealPending) })
    await connection.send([
      { text: 'delete from coffer_waiting', isSlow: 'whole' },
      { ...news, isSlow: true },
    ])
    await connection.send([{ text: SET_HEADER, values: [headerText(next)] }, COMMIT])
  } catch (error) {
    await connection.send([ROLLBACK]).catch(() => undefined)
    throw error
  }
}

/** The vault's own rows, which come first. */
async function* eachOwnRow(connection: Connection): AsyncGenerator<Row> {
  for await (const { row } of eachRow(connection)) {
    if (row.tenant !== 0) return
    yield row
  }
}

/** Deletes the rows after one place and up to another. */
function deleteStatement(before: Place, last: Place): Statement {
  const place = ({ tenant, kind, seq }: Place) => [tenant, kind, seq]
  return {
    name: 'delete',
    text: 'delete from coffer_rows where (tenant, kind, seq) > ($1, $2, $3) and (tenant, kind, seq) <= ($4, $5, $6)',
    values: [...place(before), ...place(last)],
    isSlow: true,
  }
}

function changedMeanwhile(): CofferError {
  return conflict('Another process changes the keys of this vault. Try again when it has ended.')
}
