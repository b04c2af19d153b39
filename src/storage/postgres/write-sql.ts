/** The statement that writes the changes of one or several units of work, if all their preconditions are met. */
import type { PendingEntries, Row } from '../engine.js'
import type { Times } from '../time.js'
import { IS_KEY, IS_ROW, NAME, toArrays, unnest } from './arrays.js'
import type { Logged } from './logs.js'
import type { Statement } from './pool.js'
import { NOTHING, STATE, type StoreState } from './read-sql.js'
import { eachKey, keyAt } from './row-keys.js'
import type { RowName } from './row-name.js'

const MAX_QUICK = 100

export const INSERT = 1
export const REPLACE = 2
export const REMOVE = 3
/** `PEND` stores pending log entries. `UNPEND` removes entries that are in a chain now. */
const PEND = 4
const UNPEND = 5
/** Asserts that the row still has the revision {@link Change.was}. */
export const CHECK = 6
/** Asserts that the number of rows with this key is still {@link Change.was}. */
export const COUNT = 7

/** A change of a row, or a precondition. `seq` is 0 for a new row that is not copied from another vault. */
export interface Change extends Row {
  action: number
  /**
   * The revision of the row when the unit read it, or 0 if the row did not exist. For {@link COUNT}: the number of rows
   * with the key.
   */
  was: number
  /** The position of the commit that contains this change, from 1. */
  unit: number
}

export type Changes = ReadonlyMap<unknown, Change>

/** The state of the store that a commit requires. Each number may be {@link ANY}. */
export type ExpectedState = Pick<StoreState, 'generation' | 'changes'>

export const ANY = -1

export interface Commit {
  changes: Changes
  logs?: readonly Logged[]
  state?: ExpectedState
  /** The commit adds this number to the counter of cached records. */
  step?: number | undefined
  times?: Times | undefined
}

const CONTENT = ['modified', 'expires', 'keys', 'sealed']
const ROW = [...NAME, 'seq', 'rev', 'created', ...CONTENT]
const CHANGES = [...ROW, 'action', 'was', 'unit']
export const ANY_STATE: ExpectedState = { changes: ANY, generation: ANY }

/**
 * Selects the keys in `keys` that are not in `others`, without the first key, because the table of keys has no row for
 * the key of the kind.
 */
function difference(keys: string, others: string): string {
  const key = keyAt(keys)
  return `select x.tenant, x.kind, ${key} as key, x.seq from altered x, ${eachKey(keys, 2)} where position(${key} in ${others}) = 0`
}

const REV = `coalesce((select r.rev from coffer_rows r where ${IS_ROW} limit 1), 0)`
const IS_PENDING = 't.tenant = x.tenant and t.id = x.id'
const WRITE_TEXT = `with
s as (select ${STATE} from coffer_state s where s.id = 1),
given as (select x.*, case when x.seq = 0 and x.action = ${INSERT} then nextval('coffer_seq') else x.seq end as place
  from ${unnest(CHANGES, 6)}),
refused as materialized (select x.unit::integer from given x where x.was <> case
  when x.action in (${REPLACE}, ${REMOVE}, ${CHECK}) then ${REV}
  when x.action = ${COUNT} then (select count(*) from coffer_keys k where ${IS_KEY})
  else x.was end),
checked as materialized (select $4::bigint in (-1, s.changes) and $5::bigint in (-1, s.generation)
  and not exists (select 1 from refused) as accepted from s),
changed as (select x.* from given x where (select accepted from checked)),
inserted as (insert into coffer_rows (${ROW.join(', ')})
  select ${ROW.map((column) => `x.${column === 'seq' ? 'place' : column}`).join(', ')} from changed x where x.action = ${INSERT}),
altered as materialized (select r.tenant, r.kind, r.seq, r.keys as had, x.keys as has from changed x
  cross join lateral (select * from coffer_rows r where ${IS_ROW} limit 1) r where x.action in (${REPLACE}, ${REMOVE}) and r.keys <> x.keys),
keyed as (insert into coffer_keys (tenant, kind, key, seq)
  select x.tenant, x.kind, ${keyAt('x.keys')}, x.place from changed x, ${eachKey('x.keys', 2)} where x.action = ${INSERT}
  union ${difference('x.has', 'x.had')}),
gone as materialized (${difference('x.had', 'x.has')}),
unkeyed as (delete from coffer_keys t using gone g
  where t.tenant = g.tenant and t.kind = g.kind and t.key = g.key and t.seq = g.seq),
replaced as (update coffer_rows r set rev = x.rev, ${CONTENT.map((column) => `${column} = x.${column}`).join(', ')}
  from changed x where x.action = ${REPLACE} and ${IS_ROW}),
removed as (delete from coffer_rows r using changed x where x.action = ${REMOVE} and ${IS_ROW}),
stored as (insert into coffer_waiting (tenant, id, chain, written, sealed)
  select x.tenant, x.id, x.kind, x.created, x.sealed from changed x where x.action = ${PEND} on conflict do nothing),
ended as (delete from coffer_waiting t using changed x where x.action = ${UNPEND} and ${IS_PENDING}),
stated as (update coffer_state t set changes = t.changes + $2, times = coalesce($3, t.times)
  where t.id = 1 and $2::bigint is not null and (select accepted from checked))
select ${STATE}, c.accepted, array(select unit from refused) as refused, 1 / (case when $1 and not c.accepted then 0 else 1 end) as passed from s, checked c`

/** A commit uses `for update` to lock the rows that it changes, and `for share` to lock rows that it only compares. */
const LOCKS = [
  { name: 'lock', strength: 'for update of r', actions: [REPLACE, REMOVE] },
  { name: 'share', strength: 'for share of r', actions: [CHECK] },
]
const LOCK_STATE: Statement = { text: 'select 1 from coffer_state where id = 1 for update' }

/**
 * The last statement writes everything or nothing. The other statements lock the rows that the last statement compares.
 * The answer to the last statement contains the state, whether the commits were `accepted`, and the positions of the
 * commits that were `refused` because of their rows. With `isAborting`, the statement divides by zero if a commit is
 * refused, so that the transaction ends. Requires: a commit that changes the state of the store is the only commit.
 */
export function writeStatements(
  commits: readonly Commit[],
  pending: readonly PendingEntries[] = [],
  isAborting = false,
): Statement[] {
  const changes = commits.flatMap((commit) => [...commit.changes.values()])
  for (const [at, commit] of commits.entries())
    for (const change of commit.changes.values()) change.unit = at + 1
  const [{ step, times }] = commits as [Commit]
  const raised = step === undefined && times !== undefined ? 0 : step
  const expected = commits.map(({ state = ANY_STATE }) => state)
  const counter = Math.max(...expected.map((state) => state.changes))
  const { generation } = expected[0]!
  const all = [...changes, ...pending.map((each) => changePending(each))]
  const values = [isAborting, raised, times, counter, generation, ...toArrays(CHANGES, all)]
  const locks = LOCKS.map(({ name, strength, actions }) => {
    const rows = changes.filter(({ action, was }) => was > 0 && actions.includes(action))
    // Each lock statement locks its rows in the order of their ids, which prevents most deadlocks of commits.
    rows.sort((one, other) => Buffer.compare(one.id, other.id))
    const text = `select 1 from ${unnest(['id'], 1)}, coffer_rows r where ${IS_ROW} ${strength}`
    return rows.length === 0 ? [] : [{ name, text, values: toArrays(['id'], rows) }]
  })
  const isSlow = commits.some((commit) => commit.changes.size > MAX_QUICK)
  const locked = commits.some(locksState) ? [LOCK_STATE] : []
  return [...locked, ...locks.flat(), { name: 'write', text: WRITE_TEXT, values, isSlow }]
}

/**
 * A commit locks the state of the store if it changes the state. A commit also locks the state if its unit of work has
 * searched rows of a kind and adds or changes a row of this kind. Without this lock, two units could both search for
 * one value, find nothing, and both add a row with this value.
 */
export function locksState({ step, times, changes }: Commit): boolean {
  if (step !== undefined || times !== undefined) return true
  const searched = new Set<number>()
  for (const { action, kind } of changes.values()) if (action === COUNT) searched.add(kind)
  if (searched.size === 0) return false
  return [...changes.values()].some(({ action, kind }) => action <= REPLACE && searched.has(kind))
}

export function createChange(action: number, name: RowName, was = 0, row: Partial<Row> = {}): Change {
  const { kind, tenant, id } = name
  const { seq = 0, rev = 0, created = 0, modified = 0, expires = 0, keys = NOTHING, sealed = NOTHING } = row
  return { kind, tenant, id, seq, rev, created, modified, expires, keys, sealed, action, was, unit: 0 }
}

export function changePending(pending: PendingEntries, isChained = false): Change {
  const { tenant, id, chain: kind, written: created, sealed } = pending
  return createChange(
    isChained ? UNPEND : PEND,
    { tenant, kind, id },
    0,
    isChained ? {} : { created, sealed },
  )
}

export function dropTenantStatements(tenant: number): Statement[] {
  return ['keys', 'rows', 'waiting'].map((table) => ({
    text: `delete from coffer_${table} where tenant = $1`,
    values: [tenant],
    isSlow: true,
  }))
}
