/** The engine over PostgreSQL, for any number of processes. `README.md` describes concurrent units of work. */
import { CofferError, conflict } from '../../errors.js'
import type * as port from '../engine.js'
import { Readiness } from '../readiness.js'
import { recordRow } from '../rows/row.js'
import type { Durability } from '../store.js'
import { type Header, headerText } from '../vault-file.js'
import { CHANGE, checkRetry, nextPlan, type Plan, pauseMs, READ, type Reason } from './attempt.js'
import { Batcher } from './batcher.js'
import { commitTogether, createFits } from './commit-batch.js'
import { countWrongKeys, withSnapshot } from './copies.js'
import { PendingLogs } from './logs.js'
import { COMMIT, isUnavailable, ROLLBACK } from './pool.js'
import { getStatement, type Lookup } from './read-sql.js'
import type { Shared } from './session.js'
import { EXCLUDE_OTHERS, readState, readStored } from './tables.js'
import { Unit } from './unit.js'
import { type Commit, dropTenantStatements } from './write-sql.js'

/** The stored time is renewed if it is older than this, ms. */
const NOTE_TIME_MS = 60_000
/**
 * The generation may rise by at most this number between two requests of a server. A restored vault has a random
 * generation, which differs by more than this number.
 */
const MAX_RAISED = 1000

/** Requires: only the engine closes `pool`. */
interface PostgresOptions extends Pick<Shared, 'pool' | 'clock' | 'random' | 'cachedKinds'> {
  /** `refusal` returns the reason why this process cannot use a store with the given header, if there is a reason. */
  owner?: { header: Header; refusal(header: Header): string | undefined }
  notice?(text: string): void
}

export class PostgresEngine implements port.Engine, port.EngineMaintenance {
  readonly logs: PendingLogs
  readonly maintenance?: PostgresEngine
  readonly #owner: PostgresOptions['owner']
  readonly #shared: Shared
  readonly #readiness = new Readiness(() => this.#tryWrite())
  readonly #running = new Set<Promise<unknown>>()
  readonly #notice: PostgresOptions['notice']
  #header: Header | undefined
  /** Why the store cannot be used. The operator has seen this reason. */
  #refusal: string | undefined
  #closing: Promise<void> | undefined
  #notedAt = 0

  constructor({ owner, notice, ...parts }: PostgresOptions, state: Shared['state']) {
    this.logs = new PendingLogs({ ...parts, write: (work) => this.#run(work, CHANGE), notice })
    const { pool } = parts
    const reads = new Batcher(async (names: readonly Lookup[]) => {
      const { rows } = await pool.query(getStatement(names))
      return rows.sort((one, other) => one.number - other.number)
    })
    const commits = new Batcher(
      (asked: readonly Commit[]) => commitTogether(pool, this.logs, asked),
      createFits,
    )
    this.#shared = { ...parts, reads, commits, logs: this.logs, state }
    this.#owner = owner
    this.#notice = notice
    this.#header = owner?.header
    if (owner !== undefined) this.maintenance = this
  }

  get header(): Header {
    return this.#header!
  }

  read<T>(work: (reader: Unit) => port.Awaitable<T>): Promise<T> {
    return this.#admit(work, READ)
  }

  write<T>(work: (writer: Unit) => port.Awaitable<T>, durability: Durability = 'now'): Promise<T> {
    // Most units with durability `soon` only read and append log entries. If the unit changes a row, it runs again with
    // the plan `CHANGE`.
    return this.#admit(work, durability === 'now' ? CHANGE : READ)
  }

  cachedCounter(kind: number): number | undefined {
    return this.#shared.cachedKinds.has(kind) ? this.#shared.state.changes : undefined
  }

  attach(sealer: port.LogSealer): void {
    this.logs.attach(sealer)
  }

  async checkReady(): Promise<void> {
    this.logs.refuseUnstored()
    if (this.#refusal !== undefined) await this.#readmit()
    await this.#readiness.check()
  }

  async status(): Promise<port.EngineStatus> {
    const text =
      'select count(*) as records, coalesce(sum(octet_length(sealed)), 0) as bytes from coffer_rows'
    const { records, bytes } = (await this.#shared.pool.query({ text, isSlow: true })).rows[0]
    return { sstables: 0, walBytes: 0, sstableBytes: bytes, rows: { records, dead: 0 } }
  }

  verify(check: port.CheckRow): Promise<port.Verification> {
    const { pool } = this.#shared
    const result: port.Verification = { findings: [], readable: { records: 0, logs: 0 }, segments: 0 }
    const { findings } = result
    return withSnapshot(pool, async ({ rows, pending }, connection) => {
      for await (const row of rows()) recordRow(result, check, `tenant ${row.tenant}, kind ${row.kind}`, row)
      if ((await countWrongKeys(connection)) > 0)
        findings.push({ place: 'keys', problem: 'The table of keys does not match the rows.' })
      const unreadable = await this.read(async (unit) => {
        const opened = pending.map((row) => this.logs.sealer.openPending(unit, row, row.sealed))
        const found = await Promise.all(opened)
        return new Set(pending.filter((_, index) => found[index] === undefined).map(({ tenant }) => tenant))
      })
      const problem = 'New log records do not open, or it is unknown whether the log has them already.'
      for (const tenant of unreadable) findings.push({ place: `log of tenant ${tenant}`, problem })
      return result
    })
  }

  /** Only moves log entries into their chains and confirms the clock, because the database compacts by itself. */
  async compact(): Promise<void> {
    await this.logs.chainPending()
    await this.write((writer) => writer.storeTime({ isTrusted: true }))
  }

  /** Loads the header again first, so that `work` copies the current key slots. */
  async withRows<T>(work: (found: port.VaultRows) => Promise<T>): Promise<T> {
    await this.logs.send()
    await this.#readmit()
    return withSnapshot(this.#shared.pool, work)
  }

  /** After this call, processes that opened the vault with a removed slot answer 503. */
  async replaceHeader(next: Header): Promise<void> {
    const values = [headerText(next), headerText(this.header)]
    const text =
      'update coffer_state set header = $1, generation = generation + 1 where id = 1 and header = $2 returning generation'
    const [found] = (await this.#shared.pool.query({ text, values })).rows
    if (found === undefined) throw conflict('Another process changed the key slots meanwhile. Try again.')
    this.#header = next
    this.#shared.state = { ...this.#shared.state, generation: found.generation }
  }

  /**
   * Loads key slots that another process has changed. @throws CofferError `unavailable` if this process may not use the
   * changed key slots, or if the vault was restored or replaced
   */
  async #readmit(): Promise<void> {
    const { header, state } = await readStored(this.#shared.pool)
    const raised = state.generation - this.#shared.state.generation
    const isSame = raised >= 0 && raised <= MAX_RAISED && this.#owner !== undefined
    const other = 'The vault in this store was restored or replaced.'
    const refusal = isSame ? this.#owner!.refusal(header) : other
    if (refusal !== undefined) {
      const text = `${refusal} Start this server again.`
      if (refusal !== this.#refusal) this.#notice?.(text)
      this.#refusal = refusal
      throw new CofferError('unavailable', text, { retryAfterSeconds: 60 })
    }
    this.#refusal = undefined
    this.#header = header
    this.#shared.state = state
  }

  close(): Promise<void> {
    this.#closing ??= Promise.allSettled(this.#running)
      .then(() => this.logs.close())
      .finally(() => this.#shared.pool.close())
    return this.#closing
  }

  /**
   * Writes a row, and then rolls the transaction back. @throws CofferError with the reason if the store refuses the row
   */
  async #tryWrite(): Promise<void> {
    const { pool, random } = this.#shared
    const text = 'insert into coffer_waiting (tenant, id, chain, written, sealed) values (-1, $1, 0, 0, $1)'
    const sent = [{ text: 'begin' }, { text, values: [random.bytes(16)] }, ROLLBACK]
    await pool.using((connection) => connection.send(sent))
  }

  async #admit<T>(work: (unit: Unit) => port.Awaitable<T>, plan: Plan): Promise<T> {
    if (this.#closing !== undefined) throw new CofferError('internal', 'The vault is closed already.')
    const outcome = this.#run(work, plan)
    this.#running.add(outcome)
    return outcome.finally(() => this.#running.delete(outcome))
  }

  async #run<T>(work: (unit: Unit) => port.Awaitable<T>, first: Plan): Promise<T> {
    const began = performance.now()
    let plan = first
    let taken = 0
    for (let attempt = 1; ; attempt++) {
      const unit = new Unit(this.#shared, plan)
      try {
        const result = await work(unit)
        await unit.commit()
        await this.#afterCommit(unit)
        return result
      } catch (error) {
        const collision = await unit.fail(error)
        if (collision === undefined) {
          if (unit.hasWritten && isUnavailable(error)) this.#readiness.recordWrite(error)
          throw error
        }
        taken = collision.reason === 'taken' ? taken + 1 : 0
        checkRetry(taken, performance.now() - began, unit.droppedTenant !== undefined)
        plan = nextPlan(unit.plan, collision.reason)
        await this.#prepare(collision.reason, attempt)
      }
    }
  }

  async #afterCommit(unit: Unit): Promise<void> {
    if (unit.hasWritten) this.#recordWrite(unit)
    if (unit.entries.length > 0) this.logs.add(unit.entries)
    if (unit.droppedTenant !== undefined) await this.#sweep(unit.droppedTenant)
  }

  /**
   * Waits before the next attempt, and loads the state of the store. @throws CofferError `unavailable` if this process
   * may no longer use the vault
   */
  async #prepare(reason: Reason, attempt: number): Promise<void> {
    // The next attempt is a snapshot, which reads the newest state itself.
    if (reason === 'moments') return
    const { pool, random, state } = this.#shared
    const ms = pauseMs(reason, attempt, random.bytes(1)[0]! / 256)
    await new Promise((resolve) => setTimeout(resolve, ms))
    const now = await readState(pool)
    if (now.generation === state.generation) this.#shared.state = now
    else await this.#readmit()
  }

  /** Stores the time about once a minute, in a background unit. */
  #recordWrite({ now, clock }: Unit): void {
    this.#readiness.recordWrite()
    const isOld = clock.isJump || now - this.#shared.state.times.last > NOTE_TIME_MS
    if (!isOld || Math.abs(now - this.#notedAt) <= NOTE_TIME_MS) return
    this.#notedAt = now
    this.write((unit) => unit.storeTime()).catch(() => undefined)
  }

  /**
   * Deletes rows of a deleted tenant again, because units that began before the deletion may have added rows. First
   * waits until these units have ended, for at most `lock_timeout`. If the wait takes longer, rows may be left, but
   * nobody can open these rows, because the tenant's keys are deleted.
   */
  async #sweep(tenant: number): Promise<void> {
    const statements = [{ text: 'begin' }, ...EXCLUDE_OTHERS, ...dropTenantStatements(tenant), COMMIT]
    await this.#shared.pool.using((connection) => connection.send(statements)).catch(() => undefined)
  }
}

export async function openPostgresEngine(options: PostgresOptions): Promise<PostgresEngine> {
  return new PostgresEngine(options, await readState(options.pool))
}
