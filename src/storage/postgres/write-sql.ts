/** The changes of a unit of work as one statement. */
import { toText } from '../bytes.js'
import type { PendingEntries, Row } from '../engine.js'
import type { Times } from '../time.js'
import { IS_KEY, IS_ROW, KEY_BYTES, NAME, toArrays, unnest } from './arrays.js'
import type { Statement } from './pool.js'
import { NOTHING, type RowName } from './read-sql.js'

/** A commit of more rows may take long. */
const MOST_QUICK = 100

export const INSERT = 1
/** A pending log entry is stored, or, below, removed because a chain has it. */
const PEND = 2
/** From here on a change has no effect, and the unit none, unless it finds what the unit has read. */
export const REPLACE = 3
export const REMOVE = 4
const UNPEND = 5
/** The row stays as it was read until the commit; or there is none; or as many rows have a key as before. */
const CHECK = 6
const ABSENT = 7
export const COUNT = 8

/** One change of one row, or one comparison. A new row has the `seq` 0; a row of another vault keeps its own. */
export interface Change extends Row {
  action: number
  /** The `rev` of the row as it was read. Of a key, how many rows had it. */
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
const COLUMNS = [...ROW, 'action', 'was', 'added', 'gone']
const NONE = { seq: 0, rev: 0, created: 0, modified: 0, expires: 0, keys: NOTHING, sealed: NOTHING }

/** Numbers from `first` on, for {@link keyAt}. */
export function eachKey(keys: string, first = 1): string {
  return `generate_series(${first}, octet_length(${keys}) / ${KEY_BYTES}) as n`
}

export function keyAt(keys: string): string {
  return `substring(${keys} from n * ${KEY_BYTES} - ${KEY_BYTES - 1} for ${KEY_BYTES})`
}

const IS_SAME = `${IS_ROW} and r.rev = x.was`
const IS_PENDING = 't.tenant = x.tenant and t.id = x.id'
/** What each action does with its changes `x`. Each row that it returns is a change that found what the unit has read. */
const ACTIONS: Readonly<Record<number, (x: string) => string>> = {
  [INSERT]: (x) => `insert into coffer_rows (${ROW.join(', ')})
    select ${ROW.map((column) => `x.${column === 'seq' ? 'place' : column}`).join(', ')} from ${x}`,
  [PEND]: (x) => `insert into coffer_waiting (tenant, id, chain, written, sealed)
    select x.tenant, x.id, x.kind, x.created, x.sealed from ${x} on conflict do nothing`,
  [REPLACE]: (
    x,
  ) => `update coffer_rows r set rev = x.rev, ${CONTENT.map((column) => `${column} = x.${column}`).join(', ')}
    from ${x} and ${IS_SAME} returning 1`,
  [REMOVE]: (x) => `delete from coffer_rows r using ${x} and ${IS_SAME} returning 1`,
  [UNPEND]: (x) => `delete from coffer_waiting t using ${x} and ${IS_PENDING} returning 1`,
  [CHECK]: (x) => `select 1 from coffer_rows r, ${x} and ${IS_SAME} for share of r`,
  [ABSENT]: (x) => `select 1 from ${x} and (select r.rev from coffer_rows r where ${IS_ROW} limit 1) is null`,
  [COUNT]: (x) => `select 1 from ${x} and x.was = (select count(*) from coffer_keys k where ${IS_KEY})`,
}
const ADD_KEYS = `insert into coffer_keys (tenant, kind, key, seq)
  select x.tenant, x.kind, ${keyAt('x.added')}, x.place from given x, ${eachKey('x.added')}`
const REMOVE_KEYS = `delete from coffer_keys t
  using (select x.tenant, x.kind, ${keyAt('x.gone')} as key, x.place from given x, ${eachKey('x.gone')} offset 0) x
  where t.tenant = x.tenant and t.kind = x.kind and t.key = x.key and t.seq = x.place`
const CHANGE_STATE =
  'update coffer_state t set changes = t.changes + $4, times = coalesce($5, t.times) where t.id = 1'
const LOCK_ROWS = `select 1 from ${unnest(['id'], 1)}, coffer_rows r where ${IS_ROW} for update of r`
const LOCK_STATE: Statement = { text: 'select 1 from coffer_state where id = 1 for update' }

/** A commit locks the state of the store if it changes the state, or adds what it may have searched and not found. */
function locksState({ step, times, changes }: Commit): boolean {
  const all = [...changes.values()]
  const searched = all.filter(({ action }) => action === COUNT).map(({ kind }) => kind)
  const isSearched = ({ added, kind }: Change) => added.length > 0 && searched.includes(kind)
  return step !== undefined || times !== undefined || all.some(isSearched)
}

/**
 * One statement, whose refusal is a division by zero; behind others that lock what it changes if it also compares what
 * cannot be locked, because a statement sees what was committed before it began.
 */
export function writeStatements(commit: Commit): Statement[] {
  const { changes, state = { generation: -1, changes: -1 }, step, times } = commit
  const isNew = ({ action }: Change) => action === INSERT
  const all = [...changes.values()]
  // Rows are locked in one order, so that no two units wait for one another. New ones keep theirs.
  const others = all.filter((change) => !isNew(change))
  const given = [...all.filter(isNew), ...others.sort((one, other) => Buffer.compare(one.id, other.id))]
  const compared = given.filter(({ action }) => action >= REPLACE).length
  const changesState = step !== undefined || times !== undefined
  const values = [state.generation, state.changes, compared, ...(changesState ? [step ?? 0, times] : [])]
  const actions = [...new Set(given.map(({ action }) => action))].sort()
  const found = actions
    .filter((action) => action >= REPLACE)
    .map((action) => `(select count(*) from p${action})`)
  const parts = actions.map((action) => [
    `p${action}`,
    ACTIONS[action]!(`given x where x.action = ${action}`),
  ])
  if (given.some(({ added }) => added.length > 0)) parts.push(['added', ADD_KEYS])
  if (given.some(({ gone }) => gone.length > 0)) parts.push(['gone', REMOVE_KEYS])
  if (changesState) parts.push(['stated', CHANGE_STATE])
  const place = `case when x.seq = 0 and x.action = ${INSERT} then nextval('coffer_seq') else x.seq end as place`
  const rows = ['given', `select x.*, ${place} from ${unnest(COLUMNS, values.length + 1)}`]
  const isAccepted =
    '$1::bigint in (-1, s.generation) and $2::bigint in (-1, s.changes)' +
    ` and $3::bigint = ${['0', ...found].join(' + ')}`
  const text =
    `with ${[rows, ...parts].map(([name, part]) => `${name} as (${part})`).join(',\n')}\n` +
    `select 1 / (case when ${isAccepted} then 1 else 0 end) from coffer_state s where s.id = 1`
  const write = {
    name: `write ${parts.map(([name]) => name).join(' ')}`,
    text,
    values: [...values, ...toArrays(COLUMNS, given)],
    isSlow: given.length > MOST_QUICK,
  }
  const isBlind = given.some(({ action }) => action >= ABSENT)
  const locked = given.filter(({ action }) => isBlind && (action === REPLACE || action === REMOVE))
  const lock = { name: 'lock', text: LOCK_ROWS, values: toArrays(['id'], locked) }
  return [...(locksState(commit) ? [LOCK_STATE] : []), ...(locked.length > 0 ? [lock] : []), write]
}

/** `before`: the row as it was read, unless it is new. */
export function createChange(action: number, row: Row, before?: Pick<Row, 'rev' | 'keys'>): Change {
  const { rev: was, keys } = before ?? { rev: 0, keys: NOTHING }
  const sealed = action === REMOVE ? NOTHING : row.sealed
  return { ...row, sealed, action, was, added: difference(row.keys, keys), gone: difference(keys, row.keys) }
}

/** The row with this `rev` is compared; without one, that there is none. With {@link COUNT}, the number of rows of a key. */
export function createCheck(
  { kind, tenant, id }: RowName,
  was = 0,
  action = was === 0 ? ABSENT : CHECK,
): Change {
  return { ...NONE, kind, tenant, id, action, was, added: NOTHING, gone: NOTHING }
}

/** Stores a pending entry, or removes one that is in a chain now. */
export function changePending(pending: PendingEntries, isChained = false): Change {
  const { tenant, id, chain: kind, written: created, sealed } = pending
  const change = createCheck({ tenant, kind, id }, 0, isChained ? UNPEND : PEND)
  return isChained ? change : { ...change, created, sealed }
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
