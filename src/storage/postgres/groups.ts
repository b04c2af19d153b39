/** Units of work that go to the store in one statement: those that read one row, and those that only put what is new. */
import type { LogEntry, Row } from '../engine.js'
import type { Waiting } from './log-sql.js'
import { Collision, type ConnectionPool, missing, PATIENCE_MS } from './pool.js'
import {
  getManyStatement,
  type RowName,
  readMany,
  type Statement,
  type StoreState,
  stateOf,
} from './query-sql.js'
import { type Batch, type Commit, type Shared, sealBatch } from './shared.js'
import { Unit } from './unit.js'
import { insertStatement } from './write-sql.js'

/** How often a statement that has read nothing before is sent again, after a collision. */
const MOST_ATTEMPTS = 5

/** Half of what a store that does not answer is waited for. */
const patienceMs = PATIENCE_MS / 2
export const READS = { most: 32, mostWeight: 32, weigh: () => 1, atOnce: 2, crowd: 64, patienceMs }
/** Weighed in bytes. */
export const COMMITS = {
  most: 64,
  mostWeight: 1_000_000,
  weigh: ({ news, entries }: Commit) =>
    [...news.rows, ...news.waiting].reduce((sum, { sealed }) => sum + sealed.length, entries.length * 100),
  atOnce: 2,
  crowd: 12,
  patienceMs,
}

export async function readTogether(
  pool: ConnectionPool,
  names: readonly RowName[],
): Promise<{ state: StoreState; row: Row | undefined }[]> {
  const found = readMany(names, await ask(pool, getManyStatement(names)))
  if (found === undefined) throw missing()
  return found.rows.map((row) => ({ state: found.state, row }))
}

/** What logs the units have is sealed together. Where one fails, each is run again by itself. */
export async function commitTogether(
  shared: Shared,
  commits: readonly Commit[],
): Promise<({ state: StoreState } | Error)[]> {
  const { state: believed } = shared
  const isCurrent = (commit: Commit) =>
    commit.believed.changes === believed.changes && commit.believed.generation === believed.generation
  const news = { rows: [] as Row[], waiting: [] as Waiting[] }
  const entries: LogEntry[] = []
  for (const commit of commits.filter(isCurrent)) {
    for (const row of commit.news.rows) row.seq = news.rows.push(row) - 1
    news.waiting.push(...commit.news.waiting)
    entries.push(...commit.entries)
  }
  let batches: Batch[] = []
  try {
    const unit = new Unit(shared, { inTransaction: false })
    batches = shared.logs.begin(entries)
    for (const batch of batches) {
      const waiting = await sealBatch(shared, unit, batch)
      if (waiting !== undefined) news.waiting.push(waiting)
    }
    const [answer] = await ask(shared.pool, insertStatement(news, { believed }))
    const state = answer && stateOf(answer as unknown as StoreState)
    return commits.map((commit) => (state && isCurrent(commit) ? { state } : new Collision('stale')))
  } catch (error) {
    throw error instanceof Collision && error.reason !== 'conflict' ? new Collision('alone') : error
  } finally {
    shared.logs.end(batches)
  }
}

async function ask(pool: ConnectionPool, statement: Statement): Promise<unknown[][]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return (await pool.query(statement)).rows
    } catch (error) {
      const isOver = !(error instanceof Collision) || error.reason !== 'conflict'
      if (isOver || attempt === MOST_ATTEMPTS) throw error
    }
  }
}
