/**
 * The engine over PostgreSQL. A unit of work is a serializable transaction, or a single statement; it is run again where
 * it collides with another. Any number of processes may use one store.
 */
import type { Clock, RandomSource } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'
import type { Awaitable, Engine, LogSealer } from '../engine.js'
import { Readiness } from '../readiness.js'
import type { Durability } from '../store.js'
import { Gatherer } from './gatherer.js'
import { COMMITS, commitTogether, READS, readTogether } from './groups.js'
import {
  createPostgresMaintenance,
  type OpenedBy,
  type Owner,
  type PostgresMaintenance,
  startAgain,
} from './maintenance.js'
import { OwnChain } from './own-chain.js'
import { PendingLogs } from './pending-logs.js'
import { type ConnectionPool, missing } from './pool.js'
import { closeStatement, openStatement, READ_STATE, type StoreState, stateOf } from './query-sql.js'
import { probeWrite } from './readiness.js'
import { drawOwner, type Shared, type UnitOptions } from './shared.js'
import { Unit } from './unit.js'

/** How often a unit of work is run again before its caller is told to come back later. */
const MOST_ATTEMPTS = 25
/** How long units are tried again, ms. For the deletion of a tenant, and for what may be slow, the attempts alone count. */
const MOST_MS = 5_000
/** From this attempt on the deletion of a tenant has nobody else write, as it starves where they are quicker than it. */
const STARVING = 5
/** How long that lasts at most, ms. */
const CLOSED_MS = 5_000
/** How long after a collision the transactions of this process go one by one, ms. */
const CALMING_MS = 100
/** The pause before the second attempt; it doubles with each, and half of it is left to chance. */
const PAUSE_MS = 2
const LONGEST_PAUSE_MS = 200

export interface PostgresOptions {
  /** Closed with the engine. */
  pool: ConnectionPool
  /** Without it there is no maintenance. */
  owner?: OpenedBy
  clock: Clock
  random: RandomSource
  /** Kinds of rows that callers remember from one unit to the next, and whose changes are therefore counted. */
  remembered: ReadonlySet<number>
  /** Tells the operator. */
  notice?(text: string): void
}

export interface PostgresEngine extends Engine, Owner {
  readonly maintenance?: PostgresMaintenance
  believedCounter(kind: number): number | undefined
  write: Engine['write']
}

function createEngine(
  { pool, clock, random, remembered, owner, notice }: PostgresOptions,
  state: StoreState,
): PostgresEngine {
  const self = drawOwner(random)
  const chain = new OwnChain(pool, self)
  const readiness = new Readiness(() => probeWrite(pool, random))
  const running = new Set<Promise<unknown>>()
  let sealer: LogSealer | undefined
  let closing: Promise<void> | undefined
  /** By `performance.now()`. PostgreSQL takes pages of an index for what was read, so in small tables all collide. */
  let calmUntil = 0
  let lastTurn: Promise<void> = Promise.resolve()
  const logs = new PendingLogs({
    random,
    clock,
    sealer: () => sealer!,
    owner: self,
    claimChain: () => chain.claim(),
    write: (work, isSlow) => run(work, 'now', { holds: true, isSlow }),
    ...(notice && { notice }),
  })
  const shared: Shared = {
    notedAt: 0,
    reads: new Gatherer((names) => readTogether(pool, names), READS),
    commits: new Gatherer((commits) => commitTogether(shared, commits), COMMITS),
    pool,
    self,
    clock,
    random,
    remembered,
    state,
    logs,
    get sealer() {
      return sealer!
    },
  }
  const engine: PostgresEngine = {
    read: (work) => admit(() => run(work, 'soon')),
    write: (work, durability = 'now') => admit(() => run(work, durability)),
    believedCounter: (kind) => (remembered.has(kind) ? shared.state.changes : undefined),
    attach: (given) => {
      sealer = given
      // Another process may have left some.
      logs.look()
    },
    checkReady: async () => {
      logs.refuseUnstored()
      await readiness.check()
    },
    send: () => logs.send(),
    chainPending: () => logs.chainPending(),
    findUnreadable: () => logs.findUnreadable(),
    close: () => {
      closing ??= Promise.allSettled(running)
        .then(() => logs.close())
        .then(() => chain.leave().catch(() => undefined))
        .finally(() => pool.close())
      return closing
    },
  }
  const maintenance = owner && createPostgresMaintenance(engine, shared, owner)
  return maintenance === undefined ? engine : Object.assign(engine, { maintenance })

  function admit<T>(unit: () => Promise<T>): Promise<T> {
    if (closing !== undefined)
      return Promise.reject(new CofferError('internal', 'The vault is closed already.'))
    const outcome = unit()
    running.add(outcome)
    const end = () => running.delete(outcome)
    outcome.then(end, end)
    return outcome
  }

  async function run<T>(
    work: (unit: Unit) => Awaitable<T>,
    durability: Durability,
    options: Pick<UnitOptions, 'holds' | 'isSlow'> = {},
  ): Promise<T> {
    let closed: number | undefined
    // A unit whose changes must be durable at once is a change; another is a read that is logged.
    let inTransaction = durability === 'now'
    let wasTaken = false
    let mayJoin = true
    let hasSent = false
    let until = performance.now() + MOST_MS
    for (let attempt = 1; ; attempt++) {
      const end = inTransaction && performance.now() < calmUntil ? await takeTurn(until) : undefined
      const unit = new Unit(shared, {
        inTransaction,
        maySendLater: durability === 'soon',
        mayJoin,
        hasSent,
        ...options,
        closed,
      })
      try {
        const result = await work(unit)
        await unit.commit()
        if (unit.hasWritten) readiness.noteWrite()
        if (closed !== undefined) await open(closed)
        if (unit.entries.length > 0) logs.add(unit.entries)
        if (unit.hasLogged) logs.noteRow()
        return result
      } catch (error) {
        await unit.abandon()
        // A work may have taken the collision for an error of its own, so the unit says what happened.
        const collision = unit.collision ?? (await unit.doubt(error))
        const isTakenAgain = collision?.reason === 'taken' && wasTaken && !options.holds
        if (unit.dropsTenant || options.isSlow) until = performance.now() + MOST_MS
        const isLate = performance.now() > until
        if (collision === undefined || isTakenAgain || isLate || attempt === MOST_ATTEMPTS) {
          if (closed !== undefined) await open(closed)
          if (unit.hasWritten && collision === undefined && isAway(error)) readiness.noteWrite(error)
          throw collision === undefined ? error : isTakenAgain ? taken() : busy()
        }
        wasTaken = collision.reason === 'taken'
        inTransaction ||= collision.reason !== 'stale'
        mayJoin &&= collision.reason === 'stale'
        if (collision.reason === 'unsent') {
          await logs.send()
          hasSent = true
        }
        if (collision.reason === 'conflict') {
          calmUntil = performance.now() + CALMING_MS
          end?.()
          if (attempt >= STARVING && unit.dropsTenant) closed ??= await closeToOthers()
          await pause(attempt)
        }
        // The answer that told so told the new state too, but for keys of the vault that were changed.
        if (collision.reason === 'stale' && unit.isStillBelieved && !(await refresh())) {
          end?.()
          await pause(attempt)
        }
      } finally {
        unit.end()
        end?.()
      }
    }
  }

  /**
   * Resolves when no other transaction of this process has the turn; to what ends this one's.
   * @throws CofferError `unavailable` where it does not come in time
   */
  async function takeTurn(until: number): Promise<() => void> {
    const before = lastTurn
    let end: () => void = () => undefined
    lastTurn = new Promise((resolve) => {
      end = resolve
    })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, until - performance.now(), 'late')
    })
    const isLate = (await Promise.race([before, late])) === 'late'
    clearTimeout(timer)
    if (!isLate) return end
    void before.then(end)
    throw busy()
  }

  /** Until when nobody else writes; undefined where another unit has done the same, or the store is away. */
  async function closeToOthers(): Promise<number | undefined> {
    const answer = await pool.query(closeStatement(CLOSED_MS)).catch(() => undefined)
    return answer?.rows[0]?.closed
  }

  async function open(closed: number): Promise<void> {
    // It ends by itself where this does not succeed.
    await pool.query(openStatement(closed)).catch(() => undefined)
  }

  /**
   * Whether there is another state than the one that was believed: else the unit is out of date because another one alone
   * may write. @throws CofferError `unavailable` where another process has taken away the key slot of this one
   */
  async function refresh(): Promise<boolean> {
    const before = shared.state
    const state = await readState(pool)
    const isReadmitted = state.generation !== before.generation
    if (isReadmitted && maintenance === undefined) throw startAgain('The key slots were changed.')
    shared.state = isReadmitted ? await maintenance!.readmit() : state
    return isReadmitted || state.changes !== before.changes
  }

  function pause(attempt: number): Promise<void> {
    const longest = Math.min(PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS)
    const part = 0.5 + shared.random.bytes(1)[0]! / 512
    return new Promise((resolve) => setTimeout(resolve, longest * part))
  }
}

function isAway(error: unknown): boolean {
  return error instanceof CofferError && error.code === 'unavailable'
}

function taken(): CofferError {
  return new CofferError('internal', 'A row was put as new though there is one of its id.')
}

function busy(): CofferError {
  const message = 'Too many changes of the same records at once. Try again.'
  return new CofferError('unavailable', message, { retryAfterSeconds: 1 })
}

async function readState(pool: ConnectionPool): Promise<StoreState> {
  const [state] = (await pool.query(READ_STATE)).rows
  if (state === undefined) throw missing()
  return stateOf(state)
}

/** Opens the vault in a store. @throws CofferError `vault_missing`, `unavailable`, `storage_failed` */
export async function openPostgresEngine(options: PostgresOptions): Promise<PostgresEngine> {
  return createEngine(options, await readState(options.pool))
}
