/** The port's queries and writes as SQL over the tables of `schema.ts`. Values are parameters, never part of the text. */
import type { Draft, Query, Row, RowId, SeekQuery, Where } from '../engine.js'
import type { Times } from '../time.js'

/** With a name it is prepared once a connection. */
export interface Statement {
  name?: string
  text: string
  values?: unknown[]
  /** May take long for a reason. */
  isSlow?: boolean
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
const KEY_BYTES = 8

export const BEGIN: Statement = { text: 'begin' }
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
    name: 'get',
    text:
      `select ${STATE}, ${ROW} from coffer_state s` +
      ' left join coffer_rows r on r.tenant = $1 and r.kind = $2 and r.id = $3 where s.id = 1',
    values: [tenant, kind, id],
  }
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
  const { matching, values, parameter } = select(query, now)
  const limit = `limit ${parameter(size)} offset ${parameter(Math.min((page - 1) * size, MOST_SKIPPED))}`
  const total = `(select count(*) ${matching}) as total`
  return {
    text: readRows(query, total, `${matching} order by r.seq desc ${limit}`, parameter),
    values,
    isSlow: true,
  }
}

/** The newest rows below a `seq`, without a total. */
export function seekStatement(query: SeekQuery, now: number): Statement {
  const { size, below } = query
  const { matching, values, parameter } = select(query, now)
  const range = below === undefined ? '' : ` and r.seq < ${parameter(below)}`
  const page = `${matching}${range} order by r.seq desc limit ${parameter(size)}`
  return { text: readRows(query, '0 as total', page, parameter), values, isSlow: true }
}

/** Which rows match. A query that all matches have a key for begins at that key's index, another at that of the kind. */
function select({ kind, tenant, where }: Omit<SeekQuery, 'size'>, now: number) {
  const values: unknown[] = [tenant, kind, now]
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const [key, rest] = splitKey(where)
  const live = 'r.tenant = $1 and r.kind = $2 and (r.expires = 0 or r.expires > $3)'
  const keyed =
    key === undefined
      ? 'from coffer_rows r where '
      : 'from coffer_keys a join coffer_rows r on r.tenant = a.tenant and r.kind = a.kind and r.seq = a.seq' +
        ` where a.tenant = $1 and a.kind = $2 and a.key = ${parameter(key)} and `
  const matches = rest === undefined ? '' : ` and ${condition(rest, parameter)}`
  return { matching: keyed + live + matches, values, parameter }
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

/** In units of 10 µs since 2026, so that it fits the 48 bits that the files of a vault have for it. */
const SEQ = '(floor(extract(epoch from clock_timestamp()) * 100000) - 176722560000000)::bigint'

/** `order`: that of the row among the new ones of its unit. */
export function insertStatement(draft: Draft, rev: number, created: number, order: number): Statement {
  const { tenant, kind, id, modified, expires, keys } = draft
  const insert =
    `insert into coffer_rows (tenant, kind, id, seq, rev, created, modified, expires, keys, sealed)` +
    ` values ($1, $2, $3, ${SEQ} + $4, $5, $6, $7, $8, $9, $10)`
  const values = [tenant, kind, id, order, rev, created, modified, expires, keys, draft.seal(rev)]
  const others = splitKeys(keys)
  if (others.length === 0) return { name: 'insert', text: insert, values }
  const text =
    `with w as (${insert} returning *) insert into coffer_keys` +
    ' select w.tenant, w.kind, k, w.seq from w, unnest($11::bytea[]) as k'
  return { name: 'insert keys', text, values: [...values, others] }
}

/** Contract: of the row's `seq`, which it keeps. */
export function replaceStatements(draft: Draft, rev: number): Statement[] {
  const { tenant, kind, id, seq, modified, expires, keys } = draft
  const statements: Statement[] = [
    dropKeys(tenant, kind, id),
    {
      name: 'replace',
      text:
        'update coffer_rows set rev = $4, modified = $5, expires = $6, keys = $7, sealed = $8' +
        ' where tenant = $1 and kind = $2 and id = $3',
      values: [tenant, kind, id, rev, modified, expires, keys, draft.seal(rev)],
    },
  ]
  const others = splitKeys(keys)
  if (others.length === 0) return statements
  const text = 'insert into coffer_keys select $1, $2, k, $3 from unnest($4::bytea[]) as k'
  return [...statements, { name: 'keys', text, values: [tenant, kind, seq, others] }]
}

export function removeStatements(kind: number, tenant: number, id: RowId): Statement[] {
  return [
    dropKeys(tenant, kind, id),
    {
      name: 'remove',
      text: 'delete from coffer_rows where tenant = $1 and kind = $2 and id = $3',
      values: [tenant, kind, id],
    },
  ]
}

/** All but the first, which is that of the kind and has an index of its own; each once. */
export function splitKeys(keys: Uint8Array): Uint8Array[] {
  const found = new Map<string, Uint8Array>()
  for (let at = KEY_BYTES; at < keys.length; at += KEY_BYTES) {
    const key = keys.subarray(at, at + KEY_BYTES)
    found.set(Buffer.from(key).toString('latin1'), key)
  }
  return [...found.values()]
}

function dropKeys(tenant: number, kind: number, id: RowId): Statement {
  // Each key is looked up by itself: a join would read, and lock against others, the keys of all rows of this kind.
  const text =
    'with o as (select seq, keys from coffer_rows where tenant = $1 and kind = $2 and id = $3)' +
    ' delete from coffer_keys where tenant = $1 and kind = $2 and seq = (select seq from o) and key = any(array(' +
    'select substring(o.keys from n * 8 + 1 for 8) from o, generate_series(1, 254) as n where n * 8 < octet_length(o.keys)))'
  return { name: 'unkey', text, values: [tenant, kind, id] }
}

export function dropTenantStatements(tenant: number): Statement[] {
  return ['coffer_keys', 'coffer_rows', 'coffer_waiting'].map((table) => ({
    text: `delete from ${table} where tenant = $1`,
    values: [tenant],
    isSlow: true,
  }))
}

export function noteTimeStatement({ time, last, since, until }: Times): Statement {
  return {
    name: 'time',
    text: 'update coffer_state set time = $1, last = $2, since = $3, until = $4 where id = 1',
    values: [time, last, since, until],
  }
}

/** Others see by it that what they remember of tenants, applications and the like is out of date. */
export const COUNT_CHANGE: Statement = {
  name: 'change',
  text: 'update coffer_state set changes = changes + 1 where id = 1',
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
