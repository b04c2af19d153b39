/** Makes the tables of a vault, and brings them to the present version. */
import type { RandomSource } from '../../crypto/ports.js'
import { CofferError, conflict } from '../../errors.js'
import { type Header, headerText } from '../vault-file.js'
import { drawGeneration } from './draw.js'
import { Collision, type Connection, type ConnectionPool, missing } from './pool.js'
import { COMMIT, ROLLBACK, type Statement, UNLIMITED } from './query-sql.js'
import {
  FIRST_VERSION,
  LOCK_VERSION,
  MIGRATIONS,
  READ_VERSION,
  SET_VERSION,
  VERSION_TABLE,
} from './schema.js'

/** A process that waited for another one then sees what that one has committed. */
const READ_COMMITTED = 'begin isolation level read committed'

/** Brings the tables to the present version, whatever it is now; one process at a time. @throws CofferError `vault_unsupported` */
export async function migrate(pool: ConnectionPool, migrations = MIGRATIONS): Promise<void> {
  // Not part of the transaction: its row is what others wait for.
  for (const text of [VERSION_TABLE, FIRST_VERSION]) await again(() => pool.query({ text }))
  await pool.using(async (connection) => {
    await connection.send([{ text: READ_COMMITTED }])
    try {
      const [locked] = await connection.send([{ text: LOCK_VERSION, isSlow: true }])
      await applyFrom(connection, checkVersion(locked!.rows[0].version, migrations.length), migrations)
    } catch (error) {
      await connection.send([ROLLBACK])
      throw error
    }
  })
}

/** Two processes that make the same table collide, in spite of `if not exists`. */
export async function again<T>(work: () => Promise<T>, left = 10): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Collision) || left === 0) throw error
    await new Promise((resolve) => setTimeout(resolve, 20))
    return again(work, left - 1)
  }
}

async function applyFrom(connection: Connection, version: number, migrations: readonly string[]) {
  const statements = migrations
    .slice(version)
    .flatMap((text) => text.split(';').map((one) => ({ text: one, isSlow: true })))
  await connection.send([...statements, { text: SET_VERSION, values: [migrations.length] }, COMMIT])
}

/** @throws CofferError `vault_missing`, `vault_unsupported` */
export async function requireTables(pool: ConnectionPool): Promise<void> {
  const [found] = (await pool.query({ text: READ_VERSION })).rows
  if (found === undefined || found.version === 0) throw missing()
  if (checkVersion(found.version, MIGRATIONS.length) < MIGRATIONS.length)
    throw new CofferError(
      'vault_unsupported',
      `The tables of this store have version ${found.version}. Bring them to ${MIGRATIONS.length}: coffer serve --migrate`,
    )
}

function checkVersion(version: number, known: number): number {
  if (version <= known) return version
  throw new CofferError(
    'vault_unsupported',
    `The tables of this store have version ${version}, and this program knows up to ${known}. Use a newer coffer.`,
  )
}

/**
 * Puts what stands in the place of the header of a new vault until {@link finishStore}. What an earlier one has left that
 * was not finished, whatever ended it, is removed. @throws CofferError `conflict` where there is a vault
 */
export async function beginStore(pool: ConnectionPool, header: Header, random: RandomSource): Promise<void> {
  await pool.using(async (connection) => {
    await beginEmpty(connection, CREATING + headerText(header), random)
    await connection.send([COMMIT])
  })
}

/**
 * Begins a transaction that puts `header` into a store without a finished vault, and empties the store.
 * @throws CofferError `conflict` where there is a vault
 */
export async function beginEmpty(connection: Connection, header: string, random: RandomSource) {
  const text =
    'insert into coffer_state values (1, $1, $2, 0, 0, 0, 0, 0) on conflict (id) do update set header = $1,' +
    " generation = $2 where coffer_state.header like $3 || '%'"
  const values = [header, drawGeneration(random), CREATING]
  const [, taken] = await connection.send([{ text: READ_COMMITTED }, { text, values, isSlow: true }])
  if (taken!.rowCount !== 1) {
    await connection.send([ROLLBACK])
    throw alreadyThere()
  }
  await connection.send([...UNLIMITED, ...EMPTY_TABLES])
}

/** Whether the vault in the store is the one of this header, finished or not. */
export async function isOwn(pool: ConnectionPool, header: Header): Promise<boolean> {
  const [found] = (await pool.query({ text: 'select header from coffer_state where id = 1' })).rows
  return found !== undefined && found.header.replace(CREATING, '') === headerText(header)
}

/** From now on there is a vault. @throws CofferError `conflict` if another one was begun in its place */
export async function finishStore(pool: ConnectionPool, header: Header): Promise<void> {
  const text = headerText(header)
  const { rowCount } = await pool.query({
    text: 'update coffer_state set header = $1 where id = 1 and header = $2',
    values: [text, CREATING + text],
  })
  if (rowCount !== 1) throw alreadyThere()
}

/** Whether there is a vault in the store. */
export async function hasVault(pool: ConnectionPool): Promise<boolean> {
  const [found] = (await pool.query({ text: 'select header from coffer_state where id = 1' })).rows
  return found !== undefined && !found.header.startsWith(CREATING)
}

/** Slow where there are many rows. */
const EMPTY_TABLES: readonly Statement[] = ['coffer_rows', 'coffer_keys', 'coffer_waiting'].map((table) => ({
  text: `delete from ${table}`,
  isSlow: 'whole',
}))

export function alreadyThere(): CofferError {
  return conflict('There is a vault in this store already. Choose another database, or a schema=.')
}

const CREATING = 'creating '
const REKEYING = 'rekeying '
/** By the mark in the header's place: the error if the process that put it was killed. */
const UNFINISHED: Readonly<
  Record<string, readonly [code: 'vault_missing' | 'unavailable', message: string]>
> = {
  [CREATING]: [
    'vault_missing',
    'The vault in this store was not created whole. Create it again: coffer init --store ADDRESS',
  ],
  [REKEYING]: [
    'unavailable',
    'Every key of this vault is being changed. If that was interrupted, run it again: coffer vault rekey',
  ],
}

/** Stands in the place of the header while the process that drew its number changes every key. */
export function unfinishedRekey(header: Header, random: RandomSource): string {
  return `${REKEYING}${drawGeneration(random)} ${headerText(header)}`
}

/** A header, also from what stands in its place while every key changes. */
export function withoutRekey(text: string): string {
  return text.startsWith(REKEYING) ? text.slice(text.indexOf(' ', REKEYING.length) + 1) : text
}

/** @throws CofferError `vault_missing` while a vault is created in the store; `unavailable` */
export function refuseUnfinished(header: string): void {
  for (const [mark, [code, message]] of Object.entries(UNFINISHED))
    if (header.startsWith(mark))
      throw new CofferError(code, message, code === 'unavailable' ? { retryAfterSeconds: 60 } : {})
}
