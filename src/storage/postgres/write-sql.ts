/** The changes of units of work as one statement. */
import { toText } from '../bytes.js'
import type { PendingEntries, Row } from '../engine.js'
import type { Times } from '../time.js'
import { IS_KEY, IS_ROW, NAME, toArrays, unnest } from './arrays.js'
import type { Statement } from './pool.js'
import { NOTHING, STATE } from './read-sql.js'

const KEY_BYTES = 8
/** A commit of more rows may take long. */
const MOST_QUICK = 100
/** Sealed bytes of commits, to which no other is added. */
const MOST_BYTES = 1024 * 1024

export const INSERT = 1
export const REPLACE = 2
export const REMOVE = 3
/** The row stays as it was read until the commit; or there is none. */
const CHECK = 4

/** One change of one row. A new row has the `seq` 0; a row of another vault keeps its own. */
export interface Change extends Row {
  action: number
  /** The `rev` of the row as it was read; 0 if there was none. */
  was: number
  /** The keys that lead to the row from now on, and those that no longer do, one after another. */
  added: Uint8Array
  gone: Uint8Array
}

/** How many rows had a key, which is the `id`. */
export type Counted = Pick<Row, 'tenant' | 'kind' | 'id'> & { count: number }

/** A unit of work commits all of this, or nothing. */
export interface Commit {
  /** By the names of their rows. */
  changes: ReadonlyMap<unknown, Change>
  pending?: readonly PendingEntries[]
  /** Pending entries that are in a chain now. */
  chained?: readonly PendingEntries[]
  /** Nothing is written if the numbers are others. */
  counted?: readonly Counted[]
  /** Nothing is written if the store has another state; -1 is any. */
  state?: { generation: number; changes: number }
  /** Raises the counter `changes` by so much. */
  step?: number | undefined
  times?: Times | undefined
}

const CONTENT = ['modified', 'expires', 'keys', 'sealed']
const ROW = [...NAME, 'seq', 'rev', 'created', ...CONTENT]
const TIMES = ['time', 'last', 'since', 'until'] as const
/** The arrays of a statement. Each begins with the number of the commit, from 1 on. */
const LISTS = {
  commits: ['unit', 'changes', 'generation'],
  changes: ['unit', ...ROW, 'action', 'was', 'added', 'gone'],
  pending: ['unit', 'tenant', 'id', 'chain', 'written', 'sealed'],
  chained: ['unit', 'tenant', 'id'],
  counted: ['unit', ...NAME, 'count'],
}

/** Numbers from `first` on, for {@link keyAt}. */
export function eachKey(keys: string, first = 1): string {
  return `generate_series(${first}, octet_length(${keys}) / ${KEY_BYTES}) as n`
}

export function keyAt(keys: string): string {
  return `substring(${keys} from n * ${KEY_BYTES} - ${KEY_BYTES - 1} for ${KEY_BYTES})`
}

function writeText(): string {
  const stated = TIMES.map((name, at) => `${name} = coalesce($${at + 3}, t.${name})`)
  let first = 3 + TIMES.length
  const rows = (list: keyof typeof LISTS) => {
    const text = unnest(LISTS[list], first)
    first += LISTS[list].length
    return text
  }
  const rev = `coalesce((select r.rev from coffer_rows r where ${IS_ROW} limit 1), 0)`
  const isPending = 't.tenant = x.tenant and t.id = x.id'
  const isTaken = 'x.unit not in (select unit from refused)'
  const select = (columns: readonly string[]) => columns.map((column) => `x.${column}`).join(', ')
  const places = select(ROW).replace('x.seq', 'x.place')
  const [, ...pending] = LISTS.pending
  return `with
s as (select ${STATE} from coffer_state s where s.id = 1),
units as (select x.* from ${rows('commits')}),
given as (select x.*, case when x.seq = 0 and x.action = ${INSERT} then nextval('coffer_seq') else x.seq end as place
  from ${rows('changes')}),
waiting as (select x.* from ${rows('pending')}),
chained as (select x.* from ${rows('chained')}),
counted as (select x.* from ${rows('counted')}),
refused as (
  select x.unit from units x, s where (x.changes >= 0 and x.changes <> s.changes)
    or (x.generation >= 0 and x.generation <> s.generation)
  union all select x.unit from given x where x.action > ${INSERT} and x.was <> ${rev}
  union all select x.unit from chained x where (select 1 from coffer_waiting t where ${isPending} limit 1) is null
  union all select x.unit from counted x where x.count <> (select count(*) from coffer_keys k where ${IS_KEY})),
changed as (select x.* from given x where ${isTaken}),
inserted as (insert into coffer_rows (${ROW.join(', ')}) select ${places} from changed x where x.action = ${INSERT}),
keyed as (insert into coffer_keys (tenant, kind, key, seq)
  select x.tenant, x.kind, ${keyAt('x.added')}, x.place from changed x, ${eachKey('x.added')}),
replaced as (update coffer_rows r set rev = x.rev, ${CONTENT.map((column) => `${column} = x.${column}`).join(', ')}
  from changed x where x.action = ${REPLACE} and ${IS_ROW}),
removed as (delete from coffer_rows r using changed x where x.action = ${REMOVE} and ${IS_ROW}),
gone as materialized (select x.tenant, x.kind, ${keyAt('x.gone')} as key, x.place from changed x, ${eachKey('x.gone')}),
unkeyed as (delete from coffer_keys t using gone g
  where t.tenant = g.tenant and t.kind = g.kind and t.key = g.key and t.seq = g.place),
stored as (insert into coffer_waiting (${pending.join(', ')})
  select ${select(pending)} from waiting x where ${isTaken} on conflict do nothing),
ended as (delete from coffer_waiting t using chained x where ${isPending} and ${isTaken}),
stated as (update coffer_state t set changes = t.changes + $2, ${stated.join(', ')}
  where t.id = 1 and $2::bigint is not null and not exists (select 1 from refused))
select ${STATE}, array(select unit::integer from refused) as refused,
  1 / (case when $1 and exists (select 1 from refused) then 0 else 1 end) as accepted from s`
}

const WRITE_TEXT = writeText()
const LOCK_TEXT = `select 1 from ${unnest(NAME, 1)}, coffer_rows r where ${IS_ROW} `
const LOCK_STATE: Statement = { text: 'select 1 from coffer_state where id = 1 for update' }

/**
 * The statements of commits, the last of which writes, and answers the state and the numbers of the commits that are
 * refused. The statements before it lock what it compares. `isAborting`: a refusal is a division by zero. Contract: a
 * commit that changes the state is alone.
 */
export function writeStatements(commits: readonly Commit[], isAborting = false): Statement[] {
  const arrays = (list: keyof typeof LISTS, of: (commit: Commit) => Iterable<object> | undefined) => {
    const lists = commits.map((commit) => [...(of(commit) ?? [])])
    return toArrays(
      LISTS[list],
      lists.flat(),
      lists.flatMap((rows, at) => rows.map(() => at + 1)),
    )
  }
  const [{ step, times }] = commits as [Commit]
  const changesState = step !== undefined || times !== undefined
  const values = [
    isAborting,
    changesState ? (step ?? 0) : undefined,
    ...TIMES.map((name) => times?.[name]),
    ...arrays('commits', ({ state = { changes: -1, generation: -1 } }) => [state]),
    ...arrays('changes', ({ changes }) => changes.values()),
    ...arrays('pending', ({ pending }) => pending),
    ...arrays('chained', ({ chained }) => chained),
    ...arrays('counted', ({ counted }) => counted),
  ]
  // In one order, so that no two wait for one another.
  const known = commits
    .flatMap(({ changes }) => [...changes.values()].filter(({ was }) => was > 0))
    .sort((one, other) => Buffer.compare(one.id, other.id))
  const lock = (name: string, strength: string, rows: readonly Change[]) =>
    rows.length === 0 ? [] : [{ name, text: LOCK_TEXT + strength, values: toArrays(NAME, rows) }]
  return [
    ...(commits.some(locksState) ? [LOCK_STATE] : []),
    ...lock(
      'lock',
      'for update of r',
      known.filter(({ action }) => action !== CHECK),
    ),
    ...lock(
      'share',
      'for share of r',
      known.filter(({ action }) => action === CHECK),
    ),
    {
      name: 'write',
      text: WRITE_TEXT,
      values,
      isSlow: commits.some(({ changes }) => changes.size > MOST_QUICK),
    },
  ]
}

/** A commit locks the state of the store if it changes the state, or adds what it may have searched and not found. */
function locksState({ step, times, changes, counted = [] }: Commit): boolean {
  const isSearched = (change: Change) =>
    change.added.length > 0 && counted.some(({ kind }) => kind === change.kind)
  return step !== undefined || times !== undefined || [...changes.values()].some(isSearched)
}

/** Whether `next` may go with `others`: one statement changes a row once, and compares none that it changes. */
export function fits(others: readonly Commit[], next: Commit): boolean {
  const meets = ({ changes }: Commit) =>
    [...next.changes].some(([name, { action }]) => {
      const known = changes.get(name)
      return known !== undefined && (known.action !== CHECK || action !== CHECK)
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

/** A check of the row with this `rev`; without one, that there is none. */
export function createCheck(name: Pick<Row, 'kind' | 'tenant' | 'id'>, rev = 0): Change {
  const none = { seq: 0, created: 0, modified: 0, expires: 0, keys: NOTHING, sealed: NOTHING }
  return createChange(CHECK, { ...none, ...name, rev }, { rev, keys: NOTHING })
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
