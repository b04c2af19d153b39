/** Tries whether the store would take a write now. */
import type { RandomSource } from '../../crypto/ports.js'
import type { ConnectionPool } from './pool.js'
import { ROLLBACK, type Statement } from './query-sql.js'

/** The database says that a table is locked before the pool gives up. */
const LOCK_MS = 1_000
const ID_BYTES = 16
/** No tenant has this number. */
const NOBODY = -1
/** Does nothing, but to take the lock of a write. */
const TOUCH: readonly Statement[] = [
  { text: 'begin isolation level read committed' },
  { text: `set local lock_timeout = ${LOCK_MS}` },
  { text: 'insert into coffer_rows select * from coffer_rows where false' },
  { text: 'insert into coffer_keys select * from coffer_keys where false' },
  { text: 'update coffer_state set changes = changes where false' },
]

/** Writes a row and takes it back. @throws CofferError that says why that cannot be */
export async function probeWrite(pool: ConnectionPool, random: RandomSource): Promise<void> {
  const id = random.bytes(ID_BYTES)
  const text = 'insert into coffer_waiting values ($1, $2, $1, 0, $1)'
  await pool.using((connection) => connection.send([...TOUCH, { text, values: [id, NOBODY] }, ROLLBACK]))
}
