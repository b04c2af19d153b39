/** Maintenance of a store as a whole, for the owner of the vault. */
import { CofferError, conflict } from '../../errors.js'
import type { EngineMaintenance, EngineWriter, Verification } from '../engine.js'
import { noteRow } from '../lsm/maintenance/verify.js'
import { checkHeader, type Header, headerText } from '../vault-file.js'
import { type ConnectionPool, missing } from './pool.js'
import { COMMIT, STATE, type StoreState, stateOf } from './query-sql.js'
import type { Shared } from './shared.js'
import { BEGIN_SNAPSHOT, COUNT_KEYS, eachRow, withSnapshot } from './snapshot.js'
import { refuseUnfinished } from './tables.js'

const READ_HEADER = { name: 'header', text: `select header, ${STATE} from coffer_state s where id = 1` }
/** The key slots may change so often between two requests of a server. The generation of a restored vault is further away. */
const MOST_RAISED = 1000

/**
 * The header of the vault in the store; `prepare` may read it from what stands in its place.
 * @throws CofferError `vault_missing`, `vault_damaged`, `vault_unsupported`, `unavailable`
 */
export async function readStored(
  pool: ConnectionPool,
  prepare = (text: string) => text,
): Promise<{ header: Header; state: StoreState }> {
  const [found] = (await pool.query(READ_HEADER)).rows
  if (found === undefined) throw missing()
  const text = prepare(found.header)
  refuseUnfinished(text)
  let header: unknown
  try {
    header = JSON.parse(text)
  } catch {
    header = undefined
  }
  return { header: checkHeader(header, 'The header in the store'), state: stateOf(found) }
}

/** The engine, as maintenance needs it. */
export interface Owner {
  write<T>(work: (writer: EngineWriter) => T): Promise<T>
  /** Sends the log entries of this process to the store now. */
  send(): Promise<void>
  /** Puts pending log entries of every process into a chain now. */
  chainPending(): Promise<void>
  /** Tenants with log entries that are in no row yet and do not open. */
  findUnreadable(): Promise<ReadonlySet<number>>
}

/** Known to the process that has the vault open. */
export interface OpenedBy {
  /** The header in the store. */
  header: Header
  /** Why the vault with this other header cannot be used with the keys at hand; undefined where it can. */
  refusal(header: Header): string | undefined
}

export type PostgresMaintenance = ReturnType<typeof createPostgresMaintenance>

export function createPostgresMaintenance(engine: Owner, shared: Shared, opened: OpenedBy) {
  let { header } = opened
  /** Takes over key slots that another process has changed. @throws CofferError `unavailable` where that cannot be */
  const readmit = async (): Promise<StoreState> => {
    const { header: next, state } = await readStored(shared.pool)
    const raised = state.generation - shared.state.generation
    const isOther = raised < 0 || raised > MOST_RAISED
    const refusal = isOther
      ? 'The vault in this store was restored, or is another one.'
      : opened.refusal(next)
    if (refusal !== undefined) throw startAgain(refusal)
    header = next
    return state
  }
  return {
    get header() {
      return header
    },
    async status() {
      const text =
        'select count(*) as records, coalesce(sum(octet_length(sealed)), 0) as bytes from coffer_rows'
      const { records, bytes } = (await shared.pool.query({ text, isSlow: true })).rows[0]
      const latency = shared.pool.latency()
      return {
        sstables: 0,
        walBytes: 0,
        sstableBytes: bytes,
        rows: { records, dead: 0 },
        ...(latency && { latency }),
      }
    },
    /** Opens every row, as all were at one moment, and holds the table of keys against them. */
    async verify(check) {
      const result: Verification = { findings: [], readable: { records: 0, logs: 0 }, segments: 0 }
      const now = Math.floor(shared.clock())
      await shared.pool.using(async (connection) => {
        await connection.send(BEGIN_SNAPSHOT)
        let keys = 0
        for await (const { row, own, indexed } of eachRow(connection)) {
          const place = `tenant ${row.tenant}, kind ${row.kind}`
          noteRow(result, check, place, row, now)
          if (indexed !== own)
            result.findings.push({ place, problem: `Row ${row.seq}: keys of it are missing` })
          keys += indexed
        }
        const [counts] = await connection.send([COUNT_KEYS, COMMIT])
        if (counts!.rows[0].keys !== keys)
          result.findings.push({ place: 'keys', problem: 'There are keys of rows that do not exist.' })
      })
      for (const tenant of await engine.findUnreadable())
        result.findings.push({
          place: `log of tenant ${tenant}`,
          problem: 'New log records do not open, or nobody knows whose they are.',
        })
      return result
    },
    /** Nothing is left to do here but to put log entries into the logs: the database compacts by itself. */
    async compact() {
      await engine.chainPending()
      await engine.write((writer) => writer.noteTime({ isTrusted: true }))
    },
    /** Log entries that are in no row yet go along. The key slots are those of now, whoever changed them. */
    async withRows(work) {
      await engine.send()
      await readmit()
      return shared.pool.using((connection) => withSnapshot(connection, work))
    },
    /** Other processes that have the vault open by a slot that is no more answer 503 from then on. */
    async replaceHeader(next) {
      const values = [headerText(next), headerText(header)]
      const text =
        'update coffer_state set header = $1, generation = generation + 1 where id = 1 and header = $2 returning generation'
      const [found] = (await shared.pool.query({ text, values })).rows
      if (found === undefined) throw conflict('Another process changed the key slots meanwhile. Try again.')
      header = next
      shared.state = { ...shared.state, generation: found.generation }
    },
    readmit,
  } satisfies EngineMaintenance & { readmit(): Promise<StoreState> }
}

/** Asks for a new start, at which the server is given a key that opens the vault. */
export function startAgain(reason: string): CofferError {
  return new CofferError('unavailable', `${reason} Start this server again.`, { retryAfterSeconds: 60 })
}
