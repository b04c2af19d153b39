/** The port's queries as SQL over the tables of `tables.ts`. Values are parameters, never part of the text. */
import type { Key, PendingEntries, Query, Row, SeekQuery, Where } from '../engine.js'
import type { Times } from '../time.js'
import { plainRow } from '../vault-rows.js'
import { IS_KEY, IS_ROW, NAME, toArrays, unnest } from './arrays.js'
import type { Statement } from './pool.js'

/** Each answer has it: `changes` goes up with each change to rows that are cached, `generation` with the key slots. */
export interface StoreState {
  changes: number
  generation: number
  times: Times
}

export const STATE = 's.changes, s.generation, s.times'
export const ROW = 'r.kind, r.tenant, r.id, r.seq, r.rev, r.created, r.modified, r.expires'
const LIVE = '(r.expires = 0 or r.expires > $3)'
const OWN = 'r.tenant = $1 and r.kind = $2'
export const NOTHING = new Uint8Array(0)

export const READ_STATE = {
  name: 'state',
  text: `select header, ${STATE} from coffer_state s where s.id = 1`,
}

/** ms since the epoch by the database's clock. */
export const NOW_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

export function stateOf({ changes, generation, times }: StoreState): StoreState {
  return { changes, generation, times }
}

/** A row of an answer. `sealed` is null if it was left unread. */
export type FoundRow = Omit<Row, 'sealed'> & { sealed: Uint8Array | null; bytes?: number }

/** Without its keys. */
export function rowOf(found: FoundRow): Row {
  const row = plainRow({ ...found, keys: NOTHING, sealed: found.sealed ?? NOTHING })
  return found.sealed === null && found.bytes !== undefined ? { ...row, unread: found.bytes } : row
}

export function rowsOf(found: readonly FoundRow[]): Row[] {
  return found.filter(({ kind }) => kind !== null).map(rowOf)
}

/** A question about a key instead of an id: how many rows have it, or the newest of them. */
export const COUNT = 1
export const NEWEST = 2

export type RowName = Pick<Row, 'kind' | 'tenant' | 'id'> & { asks?: number }

const KEYED = `case when x.asks = ${COUNT} then (select count(*) from coffer_keys k where ${IS_KEY}) end as keyed`
const NEWEST_ROW =
  `select n.* from (select seq from coffer_keys k where x.asks = ${NEWEST} and ${IS_KEY} order by seq desc limit 1) k cross join` +
  ' lateral (select * from coffer_rows r where r.tenant = x.tenant and r.kind = x.kind and r.seq = k.seq limit 1) n'

/** Each row has the `number` of its name, from 1 on. */
export function getStatement(names: readonly RowName[]): Statement {
  const hasKeys = names.some(({ asks }) => asks !== undefined)
  const row = hasKeys
    ? `lateral (select * from coffer_rows r where ${IS_ROW} union all ${NEWEST_ROW} limit 1) r on true`
    : `coffer_rows r on ${IS_ROW}`
  const columns = hasKeys ? [...NAME, 'asks'] : ['id']
  return {
    name: hasKeys ? 'get keys' : 'get',
    text:
      `select ${STATE}, ${ROW}, r.sealed, x.number${hasKeys ? `, ${KEYED}` : ''}` +
      ` from coffer_state s cross join ${unnest(columns, 1)} left join ${row} where s.id = 1`,
    values: toArrays(columns, hasKeys ? names.map((name) => ({ asks: 0, ...name })) : names),
  }
}

/** Selects the state with each of the rows, or alone with nulls if there is none. */
function withState(columns: string, rows: string, order?: string, on = 'true'): string {
  return `select ${STATE}, ${columns} from coffer_state s left join (${rows}) r on ${on} where s.id = 1${order === undefined ? '' : ` order by ${order}`}`
}

export function findExpiredStatement(limit: number, until: number): Statement {
  const expired = 'select * from coffer_rows where expires > 0 and expires <= $1 limit $2'
  return { name: 'expired', text: withState(`${ROW}, r.sealed`, expired), values: [until, limit] }
}

/** Keys of which every row of a page has one. */
export function countedKeys(query: Query | SeekQuery): Uint8Array[] {
  const parts = 'page' in query && query.where !== undefined ? flatten(query.where) : []
  return parts.map(keysOf).find((keys) => keys.length > 0) ?? []
}

/**
 * A page of rows: of a number, newest first, each row with the total, which costs as much as there are matches; or below
 * a `seq`, newest first, or above one, oldest first, without a total. `counted`: of these keys it says also how many rows
 * have them.
 */
export function searchStatement(query: Query | SeekQuery, now: number, counted: Key[] = []): Statement {
  const { size, maxBytes } = query
  const isPage = 'page' in query
  const { above, below }: Partial<SeekQuery> = isPage ? {} : query
  const order = above === undefined ? 'desc' : 'asc'
  const { matching, seq, parameter, values, shape } = select(query, now, order)
  const total = isPage ? `(select count(*) ${matching})` : '0'
  const bound =
    above !== undefined
      ? ` and ${seq} > ${parameter(above)}`
      : below !== undefined
        ? ` and ${seq} < ${parameter(below)}`
        : ''
  const skipped = isPage ? Math.min((query.page - 1) * size, Number.MAX_SAFE_INTEGER) : 0
  const page = `${matching}${bound} order by ${seq} ${order} limit ${parameter(size)} offset ${parameter(skipped)}`
  const bytes = 'octet_length(r.sealed)'
  const before = `sum(${bytes}) over (order by r.seq ${order}) - ${bytes}`
  const sealed =
    maxBytes === undefined
      ? 'r.sealed'
      : `case when ${before} < ${parameter(maxBytes)} then r.sealed end as sealed`
  const counts = counted.map(
    (key) => `(select count(*) from coffer_keys where ${WITH_KEY} ${parameter(key)})`,
  )
  const columns = `${total} as total, array[${counts}]::integer[] as counts, ${ROW}, ${sealed}, ${bytes} as bytes`
  const text = withState(columns, `select r.* ${page}`, `r.seq ${order}`)
  const name = `search ${[isPage, order, bound !== '', maxBytes !== undefined, counted.length, ...shape]}`
  const isUsual = shape.length <= 2 && shape.every((keys) => keys === 1 || keys === 2)
  return { ...(isUsual && { name }), text, values, isSlow: true }
}

type Order = 'asc' | 'desc'

/** Returns the placeholder of a new parameter. */
type Parameter = (value: unknown) => string

/**
 * The rows that match: ids are looked up one by one; else an index is walked in the order of `seq`, that of the rarest key
 * or of several keys if every match has one, or that of the kind. `shape`: how many keys each part of the condition has.
 */
function select({ kind, tenant, where }: Omit<SeekQuery, 'size'>, now: number, order: Order) {
  const values: unknown[] = [tenant, kind, now]
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const parts = where === undefined ? [] : flatten(where)
  const ids = parts.find((part) => 'ids' in part)
  const shape = parts.map((part) => keysOf(part).length)
  const keyed = ids === undefined ? parts.filter((_, at) => shape[at]! > 0) : []
  let from = 'coffer_rows r'
  let seq = 'r.seq'
  if (ids !== undefined)
    from = `(select distinct id from unnest(${parameter([...ids.ids])}::bytea[]) as id) x ${eachRow(IS_ROW)}`
  else if (keyed.length > 0) {
    seq = 'a.seq'
    const keys = keyed.map((part) => keysOf(part).map(parameter))
    from = `${walkRarest(keys, order)} a ${eachRow(`${OWN} and r.seq = a.seq`)}`
  }
  const rest = parts.filter((part) => part !== ids && (part !== keyed[0] || keyed.length > 1))
  const matches = [OWN, LIVE, ...rest.map((part) => condition(part, parameter, seq))]
  return { parameter, values, matching: `from ${from} where ${matches.join(' and ')}`, seq, shape }
}

const WITH_KEY = 'tenant = $1 and kind = $2 and key ='
/** A key that more rows have is not rare. */
const RARE = 1000

/** Walks the keys of one of the parts, that with the fewest rows. */
function walkRarest(parts: readonly string[][], order: Order): string {
  const count = (key: string) =>
    `(select count(*) from (select 1 from coffer_keys where ${WITH_KEY} ${key} limit ${RARE}) k)`
  const counts = parts.map((keys, at) => `(${at}, ${keys.map(count).join(' + ')})`)
  const isOnly = parts.length === 1
  const walks = parts.flatMap((keys, at) =>
    keys.map((key) => {
      const is = isOnly ? '' : `and ${at} = (select part from rarest)`
      return `(select seq from coffer_keys where ${WITH_KEY} ${key} ${is} order by seq ${order})`
    }),
  )
  if (walks.length === 1) return walks[0]!
  const rarest = `select part from (values ${counts}) as x (part, rows) order by rows limit 1`
  const choice = isOnly ? '' : `with rarest as materialized (${rarest})`
  return `(${choice} select distinct seq from (${walks.join(' union all ')}) k order by seq ${order})`
}

/** A join could be planned otherwise than by the row. */
function hasKey(is: string, seq: string): string {
  const one = `select 1 from coffer_keys k where k.tenant = $1 and k.kind = $2 and k.key ${is} and k.seq = ${seq} limit 1`
  return `((${one}) is not null)`
}

/** The limit has each row looked up by itself, whatever the planner knows of the tables. */
function eachRow(is: string): string {
  return `cross join lateral (select * from coffer_rows r where ${is} limit 1) r`
}

function flatten(where: Where): Where[] {
  return 'and' in where ? where.and.flatMap(flatten) : [where]
}

/** Keys of which every match has one; none if that is not known. */
function keysOf(where: Where): Uint8Array[] {
  if ('key' in where) return [where.key]
  return 'or' in where && where.or.every((part) => 'key' in part) ? where.or.map(({ key }) => key) : []
}

function condition(where: Where, parameter: Parameter, seq: string): string {
  const keys = keysOf(where)
  if (keys.length > 0) return hasKey(`= any(${parameter(keys)}::bytea[])`, seq)
  if ('ids' in where) return `r.id = any(${parameter([...where.ids])}::bytea[])`
  if ('not' in where) return `not ${condition(where.not, parameter, seq)}`
  if ('range' in where) {
    const column = `r.${where.range}`
    const from = where.from === undefined ? '' : ` and ${column} >= ${parameter(where.from)}`
    const below = where.below === undefined ? '' : ` and ${column} < ${parameter(where.below)}`
    return `(${column} <> 0${from}${below})`
  }
  if ('key' in where) throw new TypeError('It is one of its keys.')
  const [parts, word, none] = 'and' in where ? [where.and, ' and ', 'true'] : [where.or, ' or ', 'false']
  return `(${[none, ...parts.map((part) => condition(part, parameter, seq))].join(word)})`
}

/** Entries of a tenant that are in no chain yet, in no order, and not more than a list may read. */
export function readPendingStatement(tenant: number): Statement {
  const found = 'select * from coffer_waiting where tenant = $1 limit 10000'
  return { name: 'pending', text: withState('r.*', found), values: [tenant] }
}

/** At most `limit` rows of a chain `after` one and below a time, oldest first, and no more once they have `bytes`. */
export function readChainStatement(
  chain: number,
  below: number,
  after: PendingEntries | undefined,
  { limit, bytes }: { limit: number; bytes: number },
): Statement {
  const where = 'chain = $3 and written < $4 and (written, id) > ($5, $6)'
  const before = 'sum(octet_length(sealed)) over (order by written, id) - octet_length(sealed) as before'
  const found = `select * from coffer_waiting where ${where} order by written, id limit $1`
  const text = withState('r.*', `select *, ${before} from (${found}) w`, 'r.written, r.id', 'r.before < $2')
  const values = [limit, bytes, chain, below, after?.written ?? -1, after?.id ?? NOTHING]
  return { name: 'pending of chain', text, values }
}
