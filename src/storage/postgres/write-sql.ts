/** The port's writes as SQL over the tables of `schema.ts`. */
import type { Draft, Row, RowId } from '../engine.js'
import type { Times } from '../time.js'
import { bytesArray, numbersArray } from './binary.js'
import type { Waiting } from './log-sql.js'
import { NOW_MS, STATE, type Statement, type StoreState } from './query-sql.js'

const KEY_BYTES = 8

/** In units of 10 µs since 2026, so that it fits the 48 bits that the files of a vault have for it. */
const SEQ = '(floor(extract(epoch from clock_timestamp()) * 100000) - 176722560000000)::bigint'

/**
 * What is put as new. `seq` is the order of the rows, and counts from the database's clock on: putting a row takes longer
 * than a unit of it, so what is put later comes after.
 */
export interface News {
  rows: readonly Row[]
  waiting: readonly Waiting[]
}

const ROWS = {
  tenant: 'int4',
  kind: 'int2',
  id: 'bytea',
  seq: 'int8',
  rev: 'int8',
  created: 'int8',
  modified: 'int8',
  expires: 'int8',
  keys: 'bytea',
  sealed: 'bytea',
} as const
const WAITING = { id: 'bytea', tenant: 'int4', owner: 'bytea', written: 'int8', sealed: 'bytea' } as const

/**
 * Puts all of it, and answers the state. `believed`: where the state is another, or one unit alone may write, nothing is
 * put, and nothing answered. `isDated`: rows have their `seq` already.
 */
export function insertStatement(
  { rows, waiting }: News,
  { believed, isDated = false }: { believed?: StoreState; isDated?: boolean } = {},
): Statement {
  const values: unknown[] = [believed?.changes ?? null, believed?.generation ?? null, isDated]
  const parts = [
    `s as (select ${STATE}, case when $3::boolean then 0 else ${SEQ} end as base from coffer_state s` +
      ' where s.id = 1 and ($1::bigint is null or (s.changes = $1 and s.generation = $2::bigint' +
      ` and s.closed < ${NOW_MS})))`,
  ]
  const insert = <Column extends string>(
    table: string,
    columns: Record<Column, 'int2' | 'int4' | 'int8' | 'bytea'>,
    news: readonly Record<NoInfer<Column>, unknown>[],
    end = '',
  ) => {
    const names = Object.keys(columns) as Column[]
    const given = names.map((name) => {
      const [type, column] = [columns[name], news.map((each) => each[name])]
      values.push(
        type === 'bytea' ? bytesArray(column as Uint8Array[]) : numbersArray(type, column as number[]),
      )
      return `$${values.length}::${type}[]`
    })
    const found = names.map((name) => (name === 'seq' ? 's.base + d.seq' : `d.${name}`)).join(', ')
    parts.push(
      `${table} as (insert into coffer_${table} (${names.join(', ')}) select ${found}` +
        ` from s, unnest(${given.join(', ')}) as d (${names.join(', ')})${end})`,
    )
    return given
  }
  if (rows.length > 0) {
    const [tenant, kind, , seq] = insert('rows', ROWS, rows)
    const others = `$${values.push(bytesArray(rows.map(({ keys }) => otherKeys(keys))))}::bytea[]`
    parts.push(
      'keys as (insert into coffer_keys (tenant, kind, key, seq)' +
        ' select d.tenant, d.kind, substring(d.keys from n * 8 - 7 for 8), s.base + d.seq' +
        ` from s, unnest(${tenant}, ${kind}, ${others}, ${seq}) as d (tenant, kind, keys, seq)` +
        ' cross join lateral generate_series(1, octet_length(d.keys) / 8) as n)',
    )
  }
  // Sent again where the answer did not come, though they are there.
  if (waiting.length > 0) insert('waiting', WAITING, waiting, ' on conflict (id) do nothing')
  return {
    name: `new${rows.length > 0 ? ' rows' : ''}${waiting.length > 0 ? ' logs' : ''}`,
    text: `with ${parts.join(', ')} select ${STATE} from s`,
    values,
  }
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
  return [...statements, { name: 'keys', text, values: [tenant, kind, seq, bytesArray(others)] }]
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

/** The same as they are in the row, where they nearly always are each once. */
function otherKeys(keys: Uint8Array): Uint8Array {
  for (let at = KEY_BYTES; at < keys.length; at += KEY_BYTES)
    for (let before = KEY_BYTES; before < at; before += KEY_BYTES) {
      let same = 0
      while (same < KEY_BYTES && keys[at + same] === keys[before + same]) same++
      if (same === KEY_BYTES) return Buffer.concat(splitKeys(keys))
    }
  return keys.subarray(KEY_BYTES)
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

/**
 * Others see by it that what they remember of tenants, applications and the like is out of date. `step`: from 1 on, by
 * chance, so that a database that has lost the last change does not come to the same number by another one.
 */
export function countChangeStatement(step: number): Statement {
  const text = 'update coffer_state set changes = changes + $1 where id = 1'
  return { name: 'change', text, values: [step] }
}
