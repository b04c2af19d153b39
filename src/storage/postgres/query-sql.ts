/** The port's queries and writes as SQL over the tables of `schema.ts`. Values are parameters, never part of the text. */
import type { Query, Row, RowId, SeekQuery, Where } from '../engine.js'
import type { Times } from '../time.js'
import { bytesArray, numbersArray } from './binary.js'

/** With a name it is prepared once a connection. */
export interface Statement {
  name?: string
  text: string
  values?: unknown[]
  /** Rows of the answer have no names. */
  rowMode?: 'array'
  /** May take long for a reason; `whole`: in proportion to the whole store, within {@link UNLIMITED}. */
  isSlow?: boolean | 'whole'
}

/** What every statement that reads answers besides: what was remembered is judged by it. */
export interface StoreState extends Times {
  changes: number
  generation: number
}

export const STATE = 's.changes, s.generation, s.time, s.last, s.since, s.until'
const ROW = 'r.kind, r.tenant, r.id, r.seq, r.rev, r.created, r.modified, r.expires, r.sealed'
/** More rows than a table holds, and no more than the database can count. */
const MOST_SKIPPED = Number.MAX_SAFE_INTEGER
const NO_KEYS = new Uint8Array(0)

/** The default of every connection is serializable. */
export const BEGIN: Statement = { text: 'begin' }
/**
 * For a transaction that changes every row that it relies on but the state, which it ends with holding. Serializable, it
 * would collide with all who read or write near its rows.
 */
export const BEGIN_HOLDING: Statement = { text: 'begin isolation level repeatable read' }
/** Fails where somebody has changed the state since the transaction began, and has nobody change it before it has ended. */
export const HOLD_STATE: Statement = {
  name: 'hold',
  text: 'select 1 from coffer_state where id = 1 for share',
}
/** For the transaction alone: it may take as long as it takes, and be idle meanwhile. */
export const UNLIMITED: readonly Statement[] = [
  { text: 'set local statement_timeout = 0' },
  { text: 'set local idle_in_transaction_session_timeout = 0' },
]
export const COMMIT: Statement = { text: 'commit' }
export const ROLLBACK: Statement = { text: 'rollback' }
export const READ_STATE: Statement = {
  name: 'state',
  text: `select ${STATE} from coffer_state s where s.id = 1`,
}

/** Fails with a division by zero where what is remembered is out of date. */
export function checkState({ changes, generation }: StoreState): Statement {
  return {
    name: 'check',
    text:
      'select 1 / (case when s.changes = $1 and s.generation = $2 then 1 else 0 end) from coffer_state s' +
      ' where s.id = 1',
    values: [changes, generation],
  }
}

/** ms since the epoch by the database's clock. */
export const NOW_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** Has nobody else write for so long; answers until when, and nothing where another unit has done that. */
export function closeStatement(ms: number): Statement {
  const text = `update coffer_state set closed = ${NOW_MS} + $1 where id = 1 and closed < ${NOW_MS} returning closed`
  return { name: 'close', text, values: [ms] }
}

export function openStatement(closed: number): Statement {
  const text = 'update coffer_state set closed = 0 where id = 1 and closed = $1'
  return { name: 'open', text, values: [closed] }
}

/** Fails with a division by zero where another unit than that of `closed` has nobody else write. */
export function checkOpen(closed: number): Statement {
  const text = `select 1 / (case when s.closed = $1 or s.closed < ${NOW_MS} then 1 else 0 end) from coffer_state s where s.id = 1`
  return { name: 'check open', text, values: [closed] }
}

/** Columns of `STATE` in an answer. */
export function stateOf({ changes, generation, time, last, since, until }: StoreState): StoreState {
  return { changes, generation, time, last, since, until }
}

/** The rows of an answer, which may have the state alone. `sealed` is null where it was left unread. */
export function rowsOf(
  found: ((Row & { bytes?: number; sealed: Uint8Array | null }) | { kind: null })[],
): Row[] {
  return found.flatMap((each) => {
    if (each.kind === null) return []
    const { kind, tenant, id, seq, rev, created, modified, expires, sealed, bytes } = each
    const row = {
      kind,
      tenant,
      id,
      seq,
      rev,
      created,
      modified,
      expires,
      keys: NO_KEYS,
      sealed: sealed ?? NO_KEYS,
    }
    return [sealed === null && bytes !== undefined ? { ...row, unread: bytes } : row]
  })
}

export function getStatement(kind: number, tenant: number, id: RowId): Statement {
  return {
    name: 'get one',
    text:
      `select ${STATE}, ${ROW} from coffer_state s` +
      ' left join coffer_rows r on r.tenant = $1 and r.kind = $2 and r.id = $3 where s.id = 1',
    values: [tenant, kind, id],
  }
}

/** What one row is found by. */
export type RowName = Pick<Row, 'kind' | 'tenant' | 'id'>

/** The same for several rows. The limit has each looked up by itself, even where reading the table seems cheaper. */
export function getManyStatement(names: readonly RowName[]): Statement {
  const columns = 'seq, rev, created, modified, expires, sealed'
  return {
    name: 'get',
    text:
      'select 0, s.changes, s.generation, s.time, s.last, s.since, s.until, null from coffer_state s where s.id = 1' +
      ` union all select w.n, 0, r.* from unnest($1::integer[], $2::smallint[], $3::bytea[]) with ordinality` +
      ` as w (tenant, kind, id, n) cross join lateral (select ${columns} from coffer_rows r` +
      ' where r.tenant = w.tenant and r.kind = w.kind and r.id = w.id limit 1) r',
    values: [
      numbersArray(
        'int4',
        names.map(({ tenant }) => tenant),
      ),
      numbersArray(
        'int2',
        names.map(({ kind }) => kind),
      ),
      bytesArray(names.map(({ id }) => id)),
    ],
    rowMode: 'array',
  }
}

/** The state that an answer to {@link getManyStatement} has, and each row that there is. */
export function readMany(
  names: readonly RowName[],
  answer: readonly unknown[][],
): { state: StoreState; rows: (Row | undefined)[] } | undefined {
  let state: StoreState | undefined
  const rows: (Row | undefined)[] = names.map(() => undefined)
  for (const each of answer as [number, number, number, number, number, number, number, Buffer | null][]) {
    const [n, changes, a, b, c, d, e, sealed] = each
    if (sealed === null) state = { changes, generation: a, time: b, last: c, since: d, until: e }
    else {
      const { kind, tenant, id } = names[n - 1]!
      const [seq, rev, created, modified, expires] = [a, b, c, d, e]
      rows[n - 1] = { kind, tenant, id, seq, rev, created, modified, expires, keys: NO_KEYS, sealed }
    }
  }
  return state && { state, rows }
}

/** `claims`: for the transaction alone; what another has claimed is passed over. */
export function findExpiredStatement(limit: number, until: number, claims: boolean): Statement {
  const [name, lock] = claims ? ['claim expired', ' for update skip locked'] : ['expired', '']
  return {
    name,
    text:
      `select ${STATE}, ${ROW} from coffer_state s left join` +
      ` (select * from coffer_rows where expires > 0 and expires <= $1 limit $2${lock}) r on true where s.id = 1`,
    values: [until, limit],
  }
}

/** The placeholder of a new parameter. */
type Parameter = (value: unknown) => string

/** A page: each of its rows, newest first, with the total. */
export function findStatement(query: Query, now: number): Statement {
  const { page, size } = query
  const { matching, seq, values, parameter } = select(query, now)
  const limit = `limit ${parameter(size)} offset ${parameter(Math.min((page - 1) * size, MOST_SKIPPED))}`
  const total = `(select count(*) ${matching}) as total`
  return {
    text: readRows(query, total, `${matching} order by ${seq} desc ${limit}`, parameter),
    values,
    isSlow: true,
  }
}

/** The newest rows below a `seq`, without a total. */
export function seekStatement(query: SeekQuery, now: number): Statement {
  const { size, below } = query
  const { matching, seq, values, parameter } = select(query, now)
  const range = below === undefined ? '' : ` and ${seq} < ${parameter(below)}`
  const page = `${matching}${range} order by ${seq} desc limit ${parameter(size)}`
  return { text: readRows(query, '0 as total', page, parameter), values, isSlow: true }
}

/**
 * Which rows match, and the column of their order. A query that all matches have a key for begins at that key's index,
 * another at that of the kind. The sum has each row looked up by its `seq`: where a table was not analyzed since it
 * grew, reading all rows of the kind for each key seems to cost the same.
 */
function select({ kind, tenant, where }: Omit<SeekQuery, 'size'>, now: number) {
  const values: unknown[] = [tenant, kind, now]
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const [key, rest] = splitKey(where)
  const live = '(r.expires = 0 or r.expires > $3)'
  const keyed =
    key === undefined
      ? 'from coffer_rows r where r.tenant = $1 and r.kind = $2 and '
      : 'from coffer_keys a join coffer_rows r on r.tenant = a.tenant + 0 and r.kind = a.kind and r.seq = a.seq' +
        ` where a.tenant = $1 and a.kind = $2 and a.key = ${parameter(key)} and `
  const matches = rest === undefined ? '' : ` and ${condition(rest, parameter)}`
  const seq = key === undefined ? 'r.seq' : 'a.seq'
  return { matching: keyed + live + matches, seq, values, parameter }
}

/** A key that every match has, and what else there is to be met. */
function splitKey(where: Where | undefined): [key: Uint8Array | undefined, rest?: Where] {
  if (where === undefined) return [undefined]
  if ('key' in where) return [where.key]
  if (!('and' in where)) return [undefined, where]
  const first = where.and.find((part) => 'key' in part) as { key: Uint8Array } | undefined
  return first === undefined
    ? [undefined, where]
    : [first.key, { and: where.and.filter((part) => part !== first) }]
}

function readRows({ mostBytes }: SeekQuery, total: string, page: string, parameter: Parameter): string {
  const bytes = 'octet_length(r.sealed)'
  const before = `sum(${bytes}) over (order by r.seq desc) - ${bytes}`
  const sealed =
    mostBytes === undefined
      ? 'r.sealed'
      : `case when ${before} < ${parameter(mostBytes)} then r.sealed end as sealed`
  return (
    `select ${STATE}, ${total}, ${ROW.replace('r.sealed', sealed)}, ${bytes} as bytes from coffer_state s` +
    ` left join (select r.* ${page}) r on true where s.id = 1 order by r.seq desc`
  )
}

function condition(where: Where, parameter: Parameter): string {
  if ('key' in where) return hasKey([where.key], parameter)
  // One look-up for all of them, which the database can plan as a join.
  if ('or' in where && where.or.length > 0 && where.or.every((part) => 'key' in part))
    return hasKey(
      where.or.map(({ key }) => key),
      parameter,
    )
  if ('ids' in where) return `r.id = any(${parameter([...where.ids])}::bytea[])`
  if ('and' in where) return join(where.and, 'and', 'true', parameter)
  if ('or' in where) return join(where.or, 'or', 'false', parameter)
  if ('not' in where) return `not ${condition(where.not, parameter)}`
  const column = `r.${where.range}`
  const from = where.from === undefined ? '' : ` and ${column} >= ${parameter(where.from)}`
  const below = where.below === undefined ? '' : ` and ${column} < ${parameter(where.below)}`
  return `(${column} <> 0${from}${below})`
}

function hasKey(keys: readonly Uint8Array[], parameter: Parameter): string {
  const same = 'k.tenant = r.tenant and k.kind = r.kind and k.seq = r.seq'
  const one = keys.length === 1 ? parameter(keys[0]) : `any(${parameter(keys)}::bytea[])`
  return `exists (select 1 from coffer_keys k where ${same} and k.key = ${one})`
}

function join(parts: readonly Where[], word: string, none: string, parameter: Parameter): string {
  return `(${[none, ...parts.map((part) => condition(part, parameter))].join(` ${word} `)})`
}

/** Where a row is in the order of all. */
export type Place = Pick<Row, 'tenant' | 'kind' | 'seq'>

/** All rows, those after a place first; `indexed`: how many of its keys lead to each. */
export function readRowsStatement({ tenant, kind, seq }: Place, limit: number): Statement {
  const split =
    'select substring(r.keys from n * 8 + 1 for 8) from generate_series(1, 254) as n where n * 8 < octet_length(r.keys)'
  const text =
    `select ${ROW}, r.keys, (select count(*) from coffer_keys k where k.tenant = r.tenant and k.kind = r.kind` +
    ` and k.seq = r.seq and k.key in (${split})) as indexed from coffer_rows r` +
    ' where (r.tenant, r.kind, r.seq) > ($1, $2, $3) order by r.tenant, r.kind, r.seq limit $4'
  return { name: 'rows', text, values: [tenant, kind, seq, limit], isSlow: true }
}
