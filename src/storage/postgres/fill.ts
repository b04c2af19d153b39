/** Fills an empty store with the rows of another vault, in one transaction: until its commit the store stays empty. */
import type { Mac, RandomSource } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import type { Row, VaultRows } from '../engine.js'
import { type Header, headerText } from '../vault-file.js'
import { copyAndVerify, type Progress, type RowChecksum, type RowTarget } from '../vault-rows.js'
import type { Connection, ConnectionPool } from './pool.js'
import { COMMIT, ROLLBACK, type Statement } from './query-sql.js'
import { COUNT_KEYS, eachRow } from './snapshot.js'
import { beginEmpty, migrate } from './tables.js'
import { insertStatement } from './write-sql.js'

const ROWS_AT_ONCE = 500

export interface FillOptions {
  header: Header
  random: RandomSource
  mac: Mac
  progress: Progress
}

/** Contract: rows have their keys. @throws CofferError `conflict`, `storage_failed`, `unavailable` */
export async function fillStore(
  pool: ConnectionPool,
  source: VaultRows,
  { header, random, mac, progress }: FillOptions,
): Promise<RowChecksum> {
  await migrate(pool)
  return pool.using(async (connection) => {
    await beginEmpty(connection, headerText(header), random)
    try {
      const arrived = await copyAndVerify(source, storeTarget(connection), mac, progress)
      const { time, last, since, until } = source.times
      await connection.send([
        { ...insertStatement({ rows: [], waiting: source.pending }), isSlow: true },
        {
          text: 'update coffer_state set time = $1, last = $2, since = $3, until = $4 where id = 1',
          values: [time, last, since, until],
        },
        COMMIT,
      ])
      return arrived
    } catch (error) {
      await connection.send([ROLLBACK]).catch(() => undefined)
      throw error
    }
  })
}

/** Puts rows with the `seq` that they have; `before` is sent ahead of each batch. Reads them in the same transaction. */
export function storeTarget(
  connection: Connection,
  before: (batch: readonly Row[]) => readonly Statement[] = () => [],
): RowTarget {
  return {
    async put(rows) {
      let batch: Row[] = []
      const send = async () => {
        if (batch.length === 0) return
        const news = insertStatement({ rows: batch, waiting: [] }, { isDated: true })
        await connection.send([...before(batch), { ...news, isSlow: true }])
        batch = []
      }
      for await (const row of rows) {
        batch.push(row)
        if (batch.length === ROWS_AT_ONCE) await send()
      }
      await send()
    },
    async *read() {
      let keys = 0
      for await (const { row, own, indexed } of eachRow(connection)) {
        if (own !== indexed) throw incomplete()
        keys += indexed
        yield row
      }
      const [counted] = await connection.send([COUNT_KEYS])
      if (counted!.rows[0].keys !== keys) throw incomplete()
    },
  }
}

function incomplete(): CofferError {
  return new CofferError(
    'storage_failed',
    'The keys of what arrived are not those that were sent. Try again.',
  )
}
