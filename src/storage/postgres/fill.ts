/**
 * Fills an empty store with the rows of another vault. What was put is counted with each batch, so that a copy that was
 * ended goes on there; until everything was read again and is the same, there is no vault in the store.
 */
import type { RandomSource } from '../../crypto/ports.js'
import { conflict } from '../../errors.js'
import type { Row } from '../engine.js'
import { putAndRead, type Tally } from '../tally.js'
import type { Times } from '../time.js'
import { type Header, headerText } from '../vault-file.js'
import { drawGeneration } from './draw.js'
import type { Waiting } from './log-sql.js'
import type { ConnectionPool } from './pool.js'
import { COMMIT, ROLLBACK, type Statement, UNLIMITED } from './query-sql.js'
import { BEGIN_SNAPSHOT, COUNT_KEYS, eachRow } from './snapshot.js'
import { alreadyThere, EMPTY_TABLES, migrate, unfinishedCopy } from './tables.js'
import { insertStatement, type News } from './write-sql.js'

const ROWS_AT_ONCE = 500
/** A second copier waits for the first one's batch, and then finds that it is not its turn. */
const BEGIN_BATCH = { text: 'begin isolation level read committed' }

export interface Cargo {
  header: Header
  times: Times
  /** Log entries that are in no row yet. */
  waiting: readonly Waiting[]
  /** About how many rows there are. */
  most: number
  /** The same rows in the same order whenever it is called. */
  rows(): AsyncIterable<Row>
}

export interface FillOptions {
  random: RandomSource
  createTally(): Tally
  progress(done: number, total: number): void
}

/** Gives what was counted, here as there. @throws CofferError `conflict`, `storage_failed`, `unavailable` */
export async function fillStore(
  pool: ConnectionPool,
  { header, times, waiting, most, rows }: Cargo,
  { random, createTally, progress }: FillOptions,
): Promise<Tally> {
  await migrate(pool)
  /** Stands in the place of the header meanwhile. */
  const mark = unfinishedCopy(header)
  /** How many rows are there; at first those that an earlier copy of the same vault has put. */
  let done = await begin()
  const arrived = await putAndRead(done, put, read)
  const { time, last, since, until } = times
  // From now on there is a vault.
  await advance(1, { rows: [], waiting }, [
    {
      text: 'update coffer_state set header = $1, time = $2, last = $3, since = $4, until = $5 where id = 1',
      values: [headerText(header), time, last, since, until],
    },
  ])
  return arrived

  async function begin(): Promise<number> {
    await pool.query({
      text:
        'insert into coffer_state select 1, $1, $2, 0, 0, 0, 0, 0 where not exists (select 1 from coffer_rows)' +
        ' on conflict (id) do nothing',
      values: [mark, drawGeneration(random)],
    })
    const [found] = (await pool.query({ text: 'select header, changes from coffer_state where id = 1' })).rows
    if (found?.header !== mark) throw alreadyThere()
    return found.changes
  }

  /** Puts all rows but the first ones, which are there; gives all that were to be put. */
  async function put(first: number): Promise<Tally> {
    // What was there before was that of a vault that has changed since.
    if (first === 0) await advance(0, { rows: [], waiting: [] }, [...UNLIMITED, ...EMPTY_TABLES])
    const tally = createTally()
    let batch: Row[] = []
    const send = async () => {
      if (batch.length > 0) await advance(tally.count, { rows: batch, waiting: [] })
      batch = []
      progress(tally.count, Math.max(most, tally.count))
    }
    for await (const row of rows()) {
      tally.add(row)
      if (tally.count <= first) continue
      batch.push(row)
      if (batch.length === ROWS_AT_ONCE) await send()
    }
    await send()
    return tally
  }

  /** What is there now. */
  function read(): Promise<Tally> {
    return pool.using(async (connection) => {
      const tally = createTally()
      let keys = 0
      await connection.send(BEGIN_SNAPSHOT)
      for await (const { row, own, indexed } of eachRow(connection)) {
        if (own === indexed) tally.add(row)
        keys += indexed
      }
      const [counted] = await connection.send([COUNT_KEYS, COMMIT])
      return counted!.rows[0].keys === keys ? tally : createTally()
    })
  }

  /** Does this, and notes how many rows are there then, both or neither. @throws CofferError `conflict` */
  async function advance(next: number, news: News, statements: readonly Statement[] = []): Promise<void> {
    const text = 'update coffer_state set changes = $1 where id = 1 and header = $2 and changes = $3'
    await pool.using(async (connection) => {
      const [, noted] = await connection.send([BEGIN_BATCH, { text, values: [next, mark, done] }])
      if (noted!.rowCount !== 1) {
        await connection.send([ROLLBACK])
        throw conflict('Another copy into this store is under way. Wait until it has ended.')
      }
      const sent = { ...insertStatement(news, { isDated: true }), isSlow: true }
      await connection.send([sent, ...statements, COMMIT])
    })
    done = next
  }
}
