/**
 * Fills an empty store with the rows of another vault. What was put is counted with each batch, so that a copy that was
 * ended goes on there; until everything was read again and is the same, there is no vault in the store.
 */
import type { RandomSource } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import type { Row } from '../engine.js'
import { putAndRead, type Tally } from '../tally.js'
import type { Times } from '../time.js'
import { type Header, headerText } from '../vault-file.js'
import type { Waiting } from './log-sql.js'
import type { ConnectionPool } from './pool.js'
import { COMMIT, ROLLBACK, type Statement, UNLIMITED } from './query-sql.js'
import { BEGIN_SNAPSHOT, COUNT_KEYS, eachRow } from './snapshot.js'
import { alreadyThere, drawGeneration, EMPTY_TABLES, migrate, unfinishedCopy } from './tables.js'
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
export async function fillStore(pool: ConnectionPool, cargo: Cargo, options: FillOptions): Promise<Tally> {
  await migrate(pool)
  const filling = new Filling(pool, cargo, options)
  const arrived = await putAndRead(
    await filling.begin(),
    (first) => filling.put(first),
    () => filling.read(),
  )
  await filling.finish()
  return arrived
}

class Filling {
  readonly #pool: ConnectionPool
  readonly #cargo: Cargo
  readonly #options: FillOptions
  /** Stands in the place of the header meanwhile. */
  readonly #mark: string
  #done = 0

  constructor(pool: ConnectionPool, cargo: Cargo, options: FillOptions) {
    this.#pool = pool
    this.#cargo = cargo
    this.#options = options
    this.#mark = unfinishedCopy(cargo.header)
  }

  /** How many rows an earlier copy of the same vault has put. */
  async begin(): Promise<number> {
    await this.#pool.query({
      text:
        'insert into coffer_state select 1, $1, $2, 0, 0, 0, 0, 0 where not exists (select 1 from coffer_rows)' +
        ' on conflict (id) do nothing',
      values: [this.#mark, drawGeneration(this.#options.random)],
    })
    const [found] = (
      await this.#pool.query({ text: 'select header, changes from coffer_state where id = 1' })
    ).rows
    if (found?.header !== this.#mark) throw alreadyThere()
    this.#done = found.changes
    return this.#done
  }

  /** What was there before was that of a vault that has changed since. */
  async #clear(): Promise<void> {
    await this.#advance(0, { rows: [], waiting: [] }, [...UNLIMITED, ...EMPTY_TABLES])
  }

  /** Puts all rows but the first ones, which are there; gives all that were to be put. */
  async put(first: number): Promise<Tally> {
    if (first === 0) await this.#clear()
    const { createTally, progress } = this.#options
    const tally = createTally()
    let batch: Row[] = []
    const send = async () => {
      if (batch.length > 0) await this.#advance(tally.count, { rows: batch, waiting: [] })
      batch = []
      progress(tally.count, Math.max(this.#cargo.most, tally.count))
    }
    for await (const row of this.#cargo.rows()) {
      tally.add(row)
      if (tally.count <= first) continue
      batch.push(row)
      if (batch.length === ROWS_AT_ONCE) await send()
    }
    await send()
    return tally
  }

  /** What is there now. */
  read(): Promise<Tally> {
    return this.#pool.using(async (connection) => {
      const tally = this.#options.createTally()
      let keys = 0
      await connection.send(BEGIN_SNAPSHOT)
      for await (const { row, own, indexed } of eachRow(connection)) {
        if (own === indexed) tally.add(row)
        keys += indexed
      }
      const [counted] = await connection.send([COUNT_KEYS, COMMIT])
      return counted!.rows[0].keys === keys ? tally : this.#options.createTally()
    })
  }

  /** From now on there is a vault. */
  async finish(): Promise<void> {
    const { header, times, waiting } = this.#cargo
    const { time, last, since, until } = times
    await this.#advance(1, { rows: [], waiting }, [
      {
        text: 'update coffer_state set header = $1, time = $2, last = $3, since = $4, until = $5 where id = 1',
        values: [headerText(header), time, last, since, until],
      },
    ])
  }

  /** Does this, and notes how many rows are there then, both or neither. @throws CofferError `conflict` */
  async #advance(done: number, news: News, statements: readonly Statement[] = []): Promise<void> {
    const text = 'update coffer_state set changes = $1 where id = 1 and header = $2 and changes = $3'
    await this.#pool.using(async (connection) => {
      const [, noted] = await connection.send([BEGIN_BATCH, { text, values: [done, this.#mark, this.#done] }])
      if (noted!.rowCount !== 1) {
        await connection.send([ROLLBACK])
        throw new CofferError(
          'conflict',
          'Another copy into this store is under way. Wait until it has ended.',
        )
      }
      const put = { ...insertStatement(news, { isDated: true }), isSlow: true }
      await connection.send([put, ...statements, COMMIT])
    })
    this.#done = done
  }
}
