/**
 * The plans of attempts at a unit of work. If an attempt is discarded, this file decides whether the unit runs again,
 * and with which plan.
 */
import { CofferError } from '../../errors.js'

export interface Plan {
  /**
   * - `read`: all rows come from one statement, and therefore from one moment.
   * - `snapshot`: all statements are one transaction, which sees the store at one moment.
   * - `change`: each statement sees the newest rows. The commit fails if rows have changed after they were read.
   *
   * Cached records are not compared at the commit, because their counter shows whether they have changed.
   */
  readonly mode: 'read' | 'snapshot' | 'change'
  /** True if the log entries of this process's earlier reads are stored, so that the unit finds these entries. */
  readonly hasSentLogs: boolean
}

export const READ: Plan = { mode: 'read', hasSentLogs: false }
export const CHANGE: Plan = { mode: 'change', hasSentLogs: false }

/**
 * Why an attempt is discarded.
 * - `conflict`: another unit changed a row that this unit has read or changes.
 * - `taken`: a row that was put as new has the id of a row that exists.
 * - `stale`: cached records that the attempt used are out of date, or the key slots were changed.
 * - `moments`: a `read` needs a second statement, which would see a later moment.
 * - `writes`: a `read` or `snapshot` changes a row, so the commit must compare the rows that it has read.
 * - `logs`: log entries of this process were stored after the attempt had read.
 */
export type Reason = 'conflict' | 'taken' | 'stale' | 'moments' | 'writes' | 'logs'

/** Ends an attempt. The engine runs the unit again. */
export class Collision extends Error {
  readonly reason: Reason

  constructor(reason: Reason) {
    super('The unit of work is run again.')
    this.reason = reason
  }
}

export function nextPlan(plan: Plan, reason: Reason): Plan {
  if (reason === 'moments') return { ...plan, mode: 'snapshot' }
  if (reason === 'writes') return { ...plan, mode: 'change' }
  return plan
}

/** The engine retries a unit for this time, ms. */
const MAX_MS = 5_000
/**
 * The engine retries the deletion of a tenant for this time, ms. This time is longer than `MAX_MS`, because every unit
 * of the tenant forces a retry of the deletion.
 */
const MAX_DROP_MS = 60_000
/**
 * If the id of a new row is taken, the unit is retried at most this many times in a row. One retry is normal, because
 * another unit can take the id first. More retries mean that the unit has a bug.
 */
const MAX_TAKEN = 5

/**
 * `taken`: the number of consecutive attempts that ended with the reason `taken`. @throws CofferError if the unit must
 * not run again
 */
export function checkRetry(taken: number, passedMs: number, dropsTenant: boolean): void {
  if (taken > MAX_TAKEN)
    throw new CofferError('internal', 'A row was put as new, but a row with its id exists.')
  if (passedMs <= (dropsTenant ? MAX_DROP_MS : MAX_MS)) return
  const message = 'Too many changes of the same records at once. Try again.'
  throw new CofferError('unavailable', message, { retryAfterSeconds: 1 })
}

const MAX_PAUSE_MS = 200

/**
 * Returns the pause in ms after an attempt (`attempt`: 1 for the first). Only units of work that collide with other
 * units wait. The pause doubles with each attempt, up to {@link MAX_PAUSE_MS}. Half of the pause is random (`random`: 0
 * to 1), so that the units do not collide again.
 */
export function pauseMs(reason: Reason, attempt: number, random: number): number {
  if (reason !== 'conflict' && reason !== 'taken') return 0
  return Math.min(2 ** (attempt + 1), MAX_PAUSE_MS) * (0.5 + random / 2)
}
