/** All rows of a store as they are at one moment, for verifying it and for moving it elsewhere. */
import type { Row, VaultRows } from '../engine.js'
import type { Connection } from './pool.js'
import {
  COMMIT,
  type Place,
  READ_STATE,
  readRowsStatement,
  rowsOf,
  type Statement,
  stateOf,
  UNLIMITED,
} from './query-sql.js'
import { splitKeys } from './write-sql.js'

const ROWS_AT_ONCE = 500
export const BEGIN_SNAPSHOT: readonly Statement[] = [
  { text: 'begin isolation level repeatable read read only' },
  ...UNLIMITED,
]
export const COUNT_KEYS: Statement = { text: 'select count(*) as keys from coffer_keys', isSlow: 'whole' }
export const COUNT_ROWS: Statement = { text: 'select count(*) as rows from coffer_rows', isSlow: 'whole' }
/** Log entries that are in no row yet. */
export const READ_WAITING: Statement = {
  text: 'select id, tenant, owner, written, sealed from coffer_waiting order by written, id',
  isSlow: true,
}

/** Runs `work` over all rows of the store at one moment. Contract: nothing else uses the connection. */
export async function withSnapshot<T>(
  connection: Connection,
  work: (found: VaultRows) => Promise<T>,
): Promise<T> {
  await connection.send(BEGIN_SNAPSHOT)
  const [state, counted, waiting] = await connection.send([READ_STATE, COUNT_ROWS, READ_WAITING])
  async function* rows() {
    for await (const { row } of eachRow(connection)) yield row
  }
  const times = stateOf(state!.rows[0])
  const result = await work({ times, count: counted!.rows[0].rows, pending: waiting!.rows, rows })
  // The rows that were read count, even if the store ended the session while their copy was checked.
  await connection.send([COMMIT]).catch(() => undefined)
  return result
}

/** All rows, in order; how many keys each has, and how many of them it is found by. */
export async function* eachRow(
  connection: Connection,
): AsyncGenerator<{ row: Row; own: number; indexed: number }> {
  let last: Place = { tenant: -1, kind: -1, seq: -1 }
  for (;;) {
    const [found] = await connection.send([readRowsStatement(last, ROWS_AT_ONCE)])
    for (const each of found!.rows) {
      const [row] = rowsOf([each])
      yield { row: { ...row!, keys: each.keys }, own: splitKeys(each.keys).length, indexed: each.indexed }
      last = each
    }
    if (found!.rows.length < ROWS_AT_ONCE) return
  }
}
