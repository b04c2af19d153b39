/** The changes of a unit of work as one statement: all of them take effect, or none. */
import { toText } from '../bytes.js'
import type { PendingEntries, Row } from '../engine.js'
import type { Times } from '../time.js'
import type { Statement } from './pool.js'
import { NOTHING, STATE } from './read-sql.js'

const KEY_BYTES = 8

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

/** Changes that one statement can make: at most one of each row. */
export interface Writes {
  changes: readonly Change[]
  pending?: readonly PendingEntries[]
  /** Pending entries that are in a chain now. */
  chained?: readonly PendingEntries[]
}

export interface WriteOptions {
  /** Nothing is written if the store has another state. */
  state?: { generation: number; changes: number | undefined }
  /** Raises the counter `changes` by so much. */
  step?: number | undefined
  times?: Times | undefined
}

const CONTENT = ['modified', 'expires', 'keys', 'sealed']
const ROW = ['tenant', 'kind', 'id', 'seq', 'rev', 'created', ...CONTENT]
const INSERTED = [...ROW, 'added']
const CHANGED = [...INSERTED, 'action', 'was', 'gone']
const PENDING = ['tenant', 'id', 'chain', 'written', 'sealed']
const CHAINED = ['tenant', 'id']
const TIMES = ['time', 'last', 'since', 'until'] as const
const BYTES = ['id', 'keys', 'sealed', 'added', 'gone']

/** The parameters before the arrays: the state that the unit read, and how many rows are to change. */
const ARRAYS = 4
const FIRST_CHAINED = ARRAYS + CHANGED.length + PENDING.length
const FIRST_STATE = FIRST_CHAINED + CHAINED.length

/** Rows of parallel arrays, the first of which is the parameter `first`. */
function unnest(columns: readonly string[], first: number): string {
  const arrays = columns.map(
    (column, at) => `$${first + at}::${BYTES.includes(column) ? 'bytea' : 'bigint'}[]`,
  )
  return `s, unnest(${arrays.join(', ')}) with ordinality as x (${columns.join(', ')}, number) where s.is_current`
}

/** Numbers from `first` on, for {@link keyAt}. */
export function eachKey(keys: string, first = 1): string {
  return `generate_series(${first}, octet_length(${keys}) / ${KEY_BYTES}) as n`
}

export function keyAt(keys: string): string {
  return `substring(${keys} from n * ${KEY_BYTES} - ${KEY_BYTES - 1} for ${KEY_BYTES})`
}

function insertion(columns: readonly string[]): string {
  const values = ROW.map((column) => (column === 'seq' ? 'd.place' : `d.${column}`))
  return `with
s as (select ${STATE}, ($1::bigint is null or s.changes = $1)
  and ($2::bigint is null or s.generation = $2) as is_current from coffer_state s where s.id = 1),
d as (select x.*, case when x.seq = 0 then nextval('coffer_seq') else x.seq end as place from ${unnest(columns, ARRAYS)}),
inserted as (insert into coffer_rows (${ROW.join(', ')}) select ${values.join(', ')} from d
  ${columns === CHANGED ? `where d.action = ${INSERT}` : ''} returning 1),
keyed as (insert into coffer_keys (tenant, kind, key, seq)
  select d.tenant, d.kind, ${keyAt('d.added')}, d.place from d, ${eachKey('d.added')}),
pending as (insert into coffer_waiting (${PENDING.join(', ')})
  select ${PENDING.map((column) => `x.${column}`).join(', ')} from ${unnest(PENDING, ARRAYS + columns.length)}
  on conflict do nothing)`
}

/** Answers the state. If the parts have not changed as many rows as they should, it is a division by zero. */
function check(parts: readonly string[]): string {
  const counts = parts.map((part) => `(select count(*) from ${part})`)
  return `
select ${STATE}, 1 / (case when s.is_current and ${counts.join(' + ')} = $3 then 1 else 0 end) from s`
}

const IS_ROW = 'r.tenant = d.tenant and r.kind = d.kind and r.id = d.id and r.rev = d.was'
const INSERT_TEXT = insertion(INSERTED) + check(['inserted'])
const WRITE_TEXT = `${insertion(CHANGED)},
locked as (select 1 from coffer_rows r, d where d.action = ${CHECK} and ${IS_ROW} for share of r),
absent as (select 1 from d where d.action = ${CHECK} and d.was = 0 and (select 1 from coffer_rows r
  where r.tenant = d.tenant and r.kind = d.kind and r.id = d.id limit 1) is null),
replaced as (update coffer_rows r set rev = d.rev, ${CONTENT.map((column) => `${column} = d.${column}`).join(', ')}
  from d where d.action = ${REPLACE} and ${IS_ROW} returning 1),
removed as (delete from coffer_rows r using d where d.action = ${REMOVE} and ${IS_ROW} returning 1),
gone as materialized (select d.tenant, d.kind, ${keyAt('d.gone')} as key, d.place from d, ${eachKey('d.gone')}),
unkeyed as (delete from coffer_keys t using gone g
  where t.tenant = g.tenant and t.kind = g.kind and t.key = g.key and t.seq = g.place),
chained as (delete from coffer_waiting t using ${unnest(CHAINED, FIRST_CHAINED)}
  and t.tenant = x.tenant and t.id = x.id returning 1),
stated as (update coffer_state t set changes = t.changes + $${FIRST_STATE},
  ${TIMES.map((name, at) => `${name} = coalesce($${FIRST_STATE + 1 + at}, t.${name})`).join(', ')} from s
  where t.id = 1 and s.is_current and ($1::bigint is null or t.changes = $1)
  and $${FIRST_STATE}::bigint is not null returning 1)
${check(['inserted', 'locked', 'absent', 'replaced', 'removed', 'chained', 'stated'])}`

export function writeStatement(
  { changes, pending = [], chained = [] }: Writes,
  { state, step, times }: WriteOptions = {},
): Statement {
  const changesState = step !== undefined || times !== undefined
  const expected = changes.length + chained.length + Number(changesState)
  const values: unknown[] = [state?.changes, state?.generation, expected]
  if (!changesState && chained.length === 0 && changes.every(({ action }) => action === INSERT)) {
    values.push(...toArrays(INSERTED, changes), ...toArrays(PENDING, pending))
    return { name: 'insert', text: INSERT_TEXT, values }
  }
  values.push(...toArrays(CHANGED, changes), ...toArrays(PENDING, pending), ...toArrays(CHAINED, chained))
  values.push(changesState ? (step ?? 0) : undefined, ...TIMES.map((name) => times?.[name]))
  return { name: 'write', text: WRITE_TEXT, values }
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

/** All keys, as texts. */
export function keyTexts(keys: Uint8Array): string[] {
  return [toText(keys, 0, KEY_BYTES), ...splitKeys(keys).keys()]
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
  }))
}

const HEAD_BYTES = 20
const LENGTH_BYTES = 4
const NUMBER_BYTES = 8
/** PostgreSQL's numbers of types. */
const BYTEA = 17
const INT8 = 20

/**
 * Arrays of one dimension without nulls in the binary form of the protocol: `pg` would send text, and bytes as hexadecimal
 * digits. Contract: numbers are whole.
 */
function toArrays(columns: readonly string[], list: readonly object[]): Buffer[] {
  const sizeOf = (value: Uint8Array | number) => (typeof value === 'number' ? NUMBER_BYTES : value.length)
  return columns.map((column) => {
    const values = list.map((each) => (each as Record<string, Uint8Array | number>)[column]!)
    const bytes = values.reduce<number>((sum, value) => sum + LENGTH_BYTES + sizeOf(value), HEAD_BYTES)
    const array = Buffer.allocUnsafe(bytes)
    const head = [1, 0, BYTES.includes(column) ? BYTEA : INT8, values.length, 1]
    let at = head.reduce((to, field) => array.writeInt32BE(field, to), 0)
    for (const value of values) {
      at = array.writeInt32BE(sizeOf(value), at)
      if (typeof value === 'number') array.writeBigInt64BE(BigInt(value), at)
      else array.set(value, at)
      at += sizeOf(value)
    }
    return array
  })
}
