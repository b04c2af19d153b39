/** The tables of a vault in PostgreSQL. `README.md` describes the tables. */
import type { RandomSource } from '../../crypto/ports.js'
import { CofferError, conflict } from '../../errors.js'
import { checkHeader, type Header } from '../vault-file.js'
import { Collision } from './attempt.js'
import { type ConnectionPool, missing } from './pool.js'
import { READ_STATE, type StoreState } from './read-sql.js'

/**
 * Times are ms since the epoch, except `coffer_waiting.written`, which is µs. `coffer_chains.until` is a time of the
 * database's clock, and all other times are of the servers' clocks. Each key in `keys` has 8 bytes, and the first key
 * is the key of the kind. `fillfactor` leaves room in the pages, so that a row can be replaced without a change of its
 * indexes.
 */
const TABLES = `
create table if not exists coffer_state (
  id smallint primary key, header text not null, generation bigint not null, changes bigint not null, times json not null
);
create sequence if not exists coffer_seq;
create table if not exists coffer_rows (
  tenant integer not null, kind smallint not null, id bytea not null, seq bigint not null, rev bigint not null,
  created bigint not null, modified bigint not null, expires bigint not null, keys bytea not null,
  sealed bytea not null, constraint coffer_rows_seq primary key (tenant, kind, seq)
) with (fillfactor = 85);
create unique index if not exists coffer_rows_id on coffer_rows (id);
create index if not exists coffer_rows_expires on coffer_rows (expires) where expires > 0;
create table if not exists coffer_keys (
  tenant integer not null, kind smallint not null, key bytea not null, seq bigint not null,
  constraint coffer_keys_seq primary key (tenant, kind, key, seq)
);
create table if not exists coffer_waiting (
  tenant integer not null, id bytea not null, chain integer not null, written bigint not null,
  sealed bytea not null, primary key (tenant, id)
);
create index if not exists coffer_waiting_chain on coffer_waiting (chain, written, id);
create table if not exists coffer_chains (id integer primary key, owner bytea not null, until bigint not null)`

/** Waits until no other transaction uses these tables, and keeps other transactions out until this transaction ends. */
export const EXCLUDE_OTHERS = ['rows', 'waiting'].map((table) => ({
  text: `alter table coffer_${table} alter column tenant set not null`,
}))

/**
 * The highest random `rev`. Random values of `rev` use only the lower half of its range (u48). If the vault is copied
 * to files, the engine on disk assigns higher values one by one, and needs the upper half.
 */
export const HIGHEST_REV = 2 ** 47
/**
 * The counter of cached records grows by random steps of at most this size. A store can lose its last commits, for
 * example when a standby takes over. Because of the random steps, later commits do not repeat the lost numbers. The
 * range of the counter (2^53) is enough for 10^10 steps.
 */
export const MAX_STEP = 2 ** 20

export function randomNumber(random: RandomSource, most: number): number {
  return 1 + (Buffer.from(random.bytes(6)).readUIntBE(0, 6) % most)
}

/** The creation is retried, because two processes that create the same table collide, in spite of `if not exists`. */
export async function createTables(pool: ConnectionPool, left = 10): Promise<void> {
  try {
    await pool.query({ text: TABLES })
  } catch (error) {
    if (!(error instanceof Collision) || left === 0) throw error
    await new Promise((resolve) => setTimeout(resolve, 20))
    await createTables(pool, left - 1)
  }
}

export async function readStored(pool: ConnectionPool): Promise<{ header: Header; state: StoreState }> {
  const state = await readState(pool)
  let header: unknown
  try {
    header = JSON.parse(state.header)
  } catch {
    header = undefined
  }
  return { header: checkHeader(header, 'The header in the store'), state }
}

export async function readState(pool: ConnectionPool): Promise<StoreState & { header: string }> {
  const [state] = (await pool.query(READ_STATE)).rows
  if (state !== undefined) return state
  throw (await isHeadless(pool)) ? headless() : missing()
}

export async function requireNoVault(pool: ConnectionPool): Promise<void> {
  if ((await pool.query({ text: 'select 1 from coffer_state' })).rows.length > 0) throw alreadyThere()
  if (await isHeadless(pool)) throw headless()
}

/** The check uses one statement, because another process could create a vault between two statements. */
async function isHeadless(pool: ConnectionPool): Promise<boolean> {
  const hasNone = 'not exists (select 1 from coffer_state)'
  const text = `select 1 from coffer_rows where ${hasNone} limit 1`
  return (await pool.query({ text })).rows.length > 0
}

/** A vault is created in one transaction, so rows without a header are damage. */
export function headless(): CofferError {
  return new CofferError(
    'vault_damaged',
    'This store has rows of a vault but no header (the table coffer_state is empty). Without the header, these rows cannot be read. ' +
      'Restore the table from a dump of the database, or choose another database or schema (schema=NAME).',
    { toCallers: 'The vault has lost its header.' },
  )
}

export function alreadyThere(): CofferError {
  return conflict('There is a vault in this store already. Choose another database or schema (schema=NAME).')
}
