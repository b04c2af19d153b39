/** The changes of units of work as one statement. */
import { toText } from '../bytes.js'
import type { PendingEntries, Row } from '../engine.js'
import type { Times } from '../time.js'
import { IS_KEY, IS_ROW, NAME, toArrays, unnest } from './arrays.js'
import type { Statement } from './pool.js'
import { NOTHING, type RowName, STATE } from './read-sql.js'

const KEY_BYTES = 8
/** A commit of more rows may take long. */
const MOST_QUICK = 100
/** Sealed bytes of commits, to which no other is added. */
const MOST_BYTES = 1024 * 1024

export const INSERT = 1
export const REPLACE = 2
export const REMOVE = 3
/** A pending log entry is stored, or removed because a chain has it. */
const PEND = 4
const UNPEND = 5
/** The row stays as it was read until the commit; or there is none. */
const CHECK = 6
/** As many rows have a key as before. */
export const COUNT = 7

/** One change of one row, or one comparison. A new row has the `seq` 0; a row of another vault keeps its own. */
export interface Change extends Row {
  action: number
  /** The `rev` of the row as it was read; 0 if there was none. Of a key, how many rows had it. */
  was: number
  /** The keys that lead to the row from now on, and those that no longer do, one after another. */
  added: Uint8Array
  gone: Uint8Array
}

/** By the names of their rows. */
export type Changes = ReadonlyMap<unknown, Change>

/** A unit of work commits all of this, or nothing. */
export interface Commit {
  changes: Changes
  /** Nothing is written if the store has another state; -1 is any. */
  state?: { generation: number; changes: number }
  /** Raises the counter `changes` by so much. */
  step?: number | undefined
  times?: Times | undefined
}

const CONTENT = ['modified', 'expires', 'keys', 'sealed']
const ROW = [...NAME, 'seq', 'rev', 'created', ...CONTENT]
/** The columns of commits and of changes. Each begins with the number of the commit, from 1 on. */
const STATES = ['unit', 'changes', 'generation']
const CHANGES = ['unit', ...ROW, 'action', 'was', 'added', 'gone']
const NONE = { seq: 0, rev: 0, created: 0, modified: 0, expires: 0, keys: NOTHING, sealed: NOTHING }

/** Numbers from `first` on, for {@link keyAt}. */
export function eachKey(keys: string, first = 1): string {
  return `generate_series(${first}, octet_length(${keys}) / ${KEY_BYTES}) as n`
}

export function keyAt(keys: string): string {
  return `substring(${keys} from n * ${KEY_BYTES} - ${KEY_BYTES - 1} for ${KEY_BYTES})`
}

const REV = `coalesce((select r.rev from coffer_rows r where ${IS_ROW} limit 1), 0)`
const IS_PENDING = 't.tenant = x.tenant and t.id = x.id'
const WRITE_TEXT = `with
s as (select ${STATE} from coffer_state s where s.id = 1),
units as (select x.* from ${unnest(STATES, 4)}),
given as (select x.*, case when x.seq = 0 and x.action = ${INSERT} then nextval('coffer_seq') else x.seq end as place
  from ${unnest(CHANGES, 4 + STATES.length)}),
refused as (
  select x.unit from units x, s where (x.changes >= 0 and x.changes <> s.changes)
    or (x.generation >= 0 and x.generation <> s.generation)
  union all select x.unit from given x where x.was <> case
    when x.action in (${REPLACE}, ${REMOVE}, ${CHECK}) then ${REV}
    when x.action = ${UNPEND} then (select count(*) from coffer_waiting t where ${IS_PENDING})
    when x.action = ${COUNT} then (select count(*) from coffer_keys k where ${IS_KEY})
    else x.was end),
changed as (select x.* from given x where x.unit not in (select unit from refused)),
inserted as (insert into coffer_rows (${ROW.join(', ')})
  select ${ROW.map((column) => `x.${column === 'seq' ? 'place' : column}`).join(', ')} from changed x where x.action = ${INSERT}),
keyed as (insert into coffer_keys (tenant, kind, key, seq)
  select x.tenant, x.kind, ${keyAt('x.added')}, x.place from changed x, ${eachKey('x.added')}),
replaced as (update coffer_rows r set rev = x.rev, ${CONTENT.map((column) => `${column} = x.${column}`).join(', ')}
  from changed x where x.action = ${REPLACE} and ${IS_ROW}),
removed as (delete from coffer_rows r using changed x where x.action = ${REMOVE} and ${IS_ROW}),
gone as materialized (select x.tenant, x.kind, ${keyAt('x.gone')} as key, x.place from changed x, ${eachKey('x.gone')}),
unkeyed as (delete from coffer_keys t using gone g
  where t.tenant = g.tenant and t.kind = g.kind and t.key = g.key and t.seq = g.place),
stored as (insert into coffer_waiting (tenant, id, chain, written, sealed)
  select x.tenant, x.id, x.kind, x.created, x.sealed from changed x where x.action = ${PEND} on conflict do nothing),
ended as (delete from coffer_waiting t using changed x where x.action = ${UNPEND} and ${IS_PENDING}),
stated as (update coffer_state t set changes = t.changes + $2, times = coalesce($3, t.times)
  where t.id = 1 and $2::bigint is not null and not exists (select 1 from refused))
select ${STATE}, array(select unit::integer from refused) as refused,
  1 / (case when $1 and exists (select 1 from refused) then 0 else 1 end) as accepted from s`

/** Rows that a commit changes are locked for itself, and those that it only compares against changes. */
const LOCKS = [
  { name: 'lock', strength: 'for update of r', actions: [REPLACE, REMOVE] },
  { name: 'share', strength: 'for share of r', actions: [CHECK] },
]
const LOCK_STATE: Statement = { text: 'select 1 from coffer_state where id = 1 for update' }

/**
 * The statements of commits, the last of which writes, and answers the state and the numbers of the commits that are
 * refused. The statements before it lock what it compares. `isAborting`: a refusal is a division by zero. Contract: a
 * commit that changes the state is alone.
 */
export function writeStatements(commits: readonly Commit[], isAborting = false): Statement[] {
  const any = { changes: -1, generation: -1 }
  const states = commits.map(({ state = any }, at) => ({ ...state, unit: at + 1 }))
  const changes = commits.flatMap((commit, at) =>
    [...commit.changes.values()].map((change) => ({ ...change, unit: at + 1 })),
  )
  const [{ step, times }] = commits as [Commit]
  const raised = step === undefined && times !== undefined ? 0 : step
  const values = [isAborting, raised, times, ...toArrays(STATES, states), ...toArrays(CHANGES, changes)]
  const locks = LOCKS.map(({ name, strength, actions }) => {
    const rows = changes.filter(({ action, was }) => was > 0 && actions.includes(action))
    // In one order, so that no two wait for one another.
    rows.sort((one, other) => Buffer.compare(one.id, other.id))
    const text = `select 1 from ${unnest(['id'], 1)}, coffer_rows r where ${IS_ROW} ${strength}`
    return rows.length === 0 ? [] : [{ name, text, values: toArrays(['id'], rows) }]
  })
  const isSlow = commits.some((commit) => commit.changes.size > MOST_QUICK)
  const locked = commits.some(locksState) ? [LOCK_STATE] : []
  return [...locked, ...locks.flat(), { name: 'write', text: WRITE_TEXT, values, isSlow }]
}

/** A commit locks the state of the store if it changes the state, or adds what it may have searched and not found. */
function locksState({ step, times, changes }: Commit): boolean {
  const all = [...changes.values()]
  const searched = all.filter(({ action }) => action === COUNT).map(({ kind }) => kind)
  const isSearched = ({ added, kind }: Change) => added.length > 0 && searched.includes(kind)
  return step !== undefined || times !== undefined || all.some(isSearched)
}

/** Whether `next` may go with `others`: one statement changes a row once, and compares none that it changes. */
export function fits(others: readonly Commit[], next: Commit): boolean {
  const meets = ({ changes }: Commit) =>
    [...next.changes].some(([name, { action }]) => {
      const known = changes.get(name)
      return known !== undefined && (known.action < CHECK || action < CHECK)
    })
  const all = others.flatMap(({ changes }) => [...changes.values()])
  const bytes = all.reduce((sum, { sealed }) => sum + sealed.length, 0)
  return bytes < MOST_BYTES && ![...others, next].some(locksState) && !others.some(meets)
}

/** `before`: the row as it was read, unless it is new. */
export function createChange(action: number, row: Row, before?: Pick<Row, 'rev' | 'keys'>): Change {
  const { rev: was, keys } = before ?? { rev: 0, keys: NOTHING }
  const sealed = action === REMOVE ? NOTHING : row.sealed
  return { ...row, sealed, action, was, added: difference(row.keys, keys), gone: difference(keys, row.keys) }
}

/** A check of the row with this `rev`; without one, that there is none. With {@link COUNT}: of the number of rows of a key. */
export function createCheck({ kind, tenant, id }: RowName, was = 0, action = CHECK): Change {
  return { ...NONE, kind, tenant, id, action, was, added: NOTHING, gone: NOTHING }
}

/** Stores a pending entry, or removes one that is in a chain now. */
export function changePending(pending: PendingEntries, isChained = false): Change {
  const { tenant, id, chain: kind, written: created, sealed } = pending
  const check = createCheck({ tenant, kind, id }, isChained ? 1 : 0, isChained ? UNPEND : PEND)
  return isChained ? check : { ...check, created, sealed }
}

/** All keys but the first, which is that of the kind and has an index of its own; each once. */
function splitKeys(keys: Uint8Array): Map<string, Uint8Array> {
  const found = new Map<string, Uint8Array>()
  for (let at = KEY_BYTES; at < keys.length; at += KEY_BYTES)
    found.set(toText(keys, at, at + KEY_BYTES), keys.subarray(at, at + KEY_BYTES))
  return found
}

function difference(keys: Uint8Array, others: Uint8Array): Buffer {
  const found = splitKeys(keys)
  for (const key of splitKeys(others).keys()) found.delete(key)
  return Buffer.concat([...found.values()])
}

export function dropTenantStatements(tenant: number): Statement[] {
  return ['keys', 'rows', 'waiting'].map((table) => ({
    text: `delete from coffer_${table} where tenant = $1`,
    values: [tenant],
    isSlow: true,
  }))
}
