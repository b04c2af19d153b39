/** The queries of the port (`storage/engine.ts`) as SQL. Values are parameters, and never part of the text. */
import type { Key, PendingEntries, Query, Row, SeekQuery, Where } from '../engine.js'
import type { Times } from '../time.js'
import { plainRow } from '../vault-rows.js'
import { IS_KEY, IS_ROW, NAME, toArrays, unnest } from './arrays.js'
import type { Statement } from './pool.js'
import { eachKey, keyAt } from './row-keys.js'
import type { RowName } from './row-name.js'

export interface StoreState {
  /** Each commit that changes a cached record increases this counter. */
  changes: number
  /** Each change of the key slots and each rekey increases this number. */
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

/** The database's clock, ms since the epoch. */
export const NOW_MS = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

export function stateOf({ changes, generation, times }: StoreState): StoreState {
  return { changes, generation, times }
}

/** A row of an answer. `sealed` is null if the row was too large for its page. */
export type FoundRow = Omit<Row, 'sealed'> & { sealed: Uint8Array | null; bytes?: number }

export function rowOf(found: FoundRow): Row {
  const row = plainRow({ ...found, keys: NOTHING, sealed: found.sealed ?? NOTHING })
  return found.sealed === null && found.bytes !== undefined ? { ...row, unread: found.bytes } : row
}

export function rowsOf(found: readonly FoundRow[]): Row[] {
  return found.filter(({ kind }) => kind !== null).map(rowOf)
}

/** Questions about a key: how many rows have this key, and which of these rows is the newest. */
export const COUNT = 1
export const NEWEST = 2

/** A row to read by its id. If `asks` is set, `id` is a key, and the look-up is a question about this key. */
export type Lookup = RowName & { asks?: typeof COUNT | typeof NEWEST }

const KEYED = `case when x.asks = ${COUNT} then (select count(*) from coffer_keys k where ${IS_KEY}) end as keyed`
const NEWEST_ROW =
  `select n.* from (select seq from coffer_keys k where x.asks = ${NEWEST} and ${IS_KEY} order by seq desc limit 1) k cross join` +
  ' lateral (select * from coffer_rows r where r.tenant = x.tenant and r.kind = x.kind and r.seq = k.seq limit 1) n'

/** Each row of the answer has a `number`: the position of its name in `names`, from 1. */
export function getStatement(names: readonly Lookup[]): Statement {
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

/**
 * Selects the state of the store together with each row. If no row matches, the SQL selects one row, which has the
 * state and nulls.
 */
function withState(columns: string, rows: string, order?: string, on = 'true'): string {
  return `select ${STATE}, ${columns} from coffer_state s left join (${rows}) r on ${on} where s.id = 1${order === undefined ? '' : ` order by ${order}`}`
}

export function findExpiredStatement(limit: number, until: number): Statement {
  const expired = 'select * from coffer_rows where expires > 0 and expires <= $1 limit $2'
  return { name: 'expired', text: withState(`${ROW}, r.sealed`, expired), values: [until, limit] }
}

/**
 * Returns keys: every match has at least one of these keys. Returns no keys if the condition requires no key, or if the
 * query has no page.
 */
export function countedKeys(query: Query | SeekQuery): Uint8Array[] {
  const parts = 'page' in query && query.where !== undefined ? flatten(query.where) : []
  const keyed = parts.map(keysOf).filter((keys) => keys.length > 0)
  return keyed.reduce((fewest, keys) => (keys.length < fewest.length ? keys : fewest), keyed[0] ?? [])
}

/**
 * Selects a page of rows. Each row also has `counts`: the number of rows for each key in `counted`. A page by number
 * has the newest rows first, and each row has the total number of matches, which {@link countMatches} counts. A page by
 * `seq` has the rows lower than `below`, newest first, or the rows higher than `above`, oldest first. A page by `seq`
 * has no total.
 */
export function searchStatement(query: Query | SeekQuery, now: number, counted: Key[] = []): Statement {
  const { size, maxBytes } = query
  const isPage = 'page' in query
  const { above, below }: Partial<SeekQuery> = isPage ? {} : query
  const order = above === undefined ? 'desc' : 'asc'
  const { matching, seq, parameter, values, shape, keyed } = select(query, now, order)
  const total = isPage ? countMatches(query, matching, keyed, parameter) : '0'
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

type Parameter = (value: unknown) => string

/**
 * Returns the SQL `from … where …` that finds the matching rows. If the condition has a list of ids, the SQL looks up
 * each id. If parts of the condition consist of keys, the SQL reads the index of keys, in the order of `seq`, for the
 * part with the fewest rows. In all other cases, the SQL reads the index of the kind, in the order of `seq`. `shape`:
 * the number of keys in each part of the condition.
 */
function select({ kind, tenant, where }: Omit<SeekQuery, 'size'>, now: number, order: Order) {
  const values: unknown[] = [tenant, kind, now]
  const parameter: Parameter = (value) => `$${values.push(value)}`
  const parts = where === undefined ? [] : flatten(where)
  const ids = parts.find((part) => 'ids' in part)
  const shape = parts.map((part) => keysOf(part).length)
  const isWalked = (at: number) => shape[at]! > 0 && shape[at]! <= MANY_KEYS
  const keyed = ids === undefined ? parts.filter((_, at) => isWalked(at)) : []
  const keys = keyed.map((part) => keysOf(part).map(parameter))
  let from = 'coffer_rows r'
  let seq = 'r.seq'
  if (ids !== undefined)
    from = `(select distinct id from unnest(${parameter([...ids.ids])}::bytea[]) as id) x ${eachRow(IS_ROW)}`
  else if (keyed.length > 0) {
    seq = 'a.seq'
    from = `${walkRarest(keys, order)} a ${eachRow(`${OWN} and r.seq = a.seq`)}`
  }
  const rest = parts.filter((part) => part !== ids && (part !== keyed[0] || keyed.length > 1))
  const matches = [OWN, LIVE, ...rest.map((part) => condition(part, parameter, seq))]
  const matching = `from ${from} where ${matches.join(' and ')}`
  return { parameter, values, matching, seq, shape, keyed: keyed.length === parts.length ? keys : undefined }
}

/**
 * Counts the live matches. If each part of the condition consists of keys, the rows of frequent keys are counted in the
 * index of keys, without reading the rows. Then the expired rows are subtracted from the count. Only a few rows are
 * expired, because expired rows are purged. If a part has no keys, each match is read. `keyed`: the parameters of the
 * keys of each part of the condition, or undefined if a part has no keys.
 */
function countMatches(
  { where }: Query,
  matching: string,
  keyed: readonly string[][] | undefined,
  parameter: Parameter,
): string {
  const byRow = `(select count(*) ${matching})`
  if (keyed === undefined) return byRow
  const parts = where === undefined ? [] : flatten(where)
  const conditions = parts.map((part) => condition(part, parameter, 'r.seq'))
  const isExpired = [OWN, 'r.expires > 0', 'r.expires <= $3', ...conditions].join(' and ')
  const expired = `(select count(*) from coffer_rows r where ${isExpired})`
  if (keyed.length === 0) return `((select count(*) from coffer_rows r where ${OWN}) - ${expired})`
  const walks = keyed.map((keys) => walkRarest([keys], 'asc'))
  if (walks.length === 1) return `((select count(*) from ${walks[0]} a) - ${expired})`
  const inAll = `select 1 from (${walks.map((walk) => `select seq from ${walk} w`).join(' union all ')}) a`
  const byKey = `((select count(*) from (${inAll} group by seq having count(*) = ${walks.length}) a) - ${expired})`
  const rows = keyed.map((keys) => `(${keys.map(countRare).join(' + ')})`)
  return `case when least(${rows}) < ${RARE} then ${byRow} else ${byKey} end`
}

const WITH_KEY = 'tenant = $1 and kind = $2 and key ='
/** To find the key with the fewest rows, the rows of each key are counted up to this number. */
const RARE = 1000
/**
 * If a condition has more keys than this, the keys in each row are compared with these keys. The index of keys would
 * need a look-up for each key of the condition.
 */
const MANY_KEYS = 32

function countRare(key: string): string {
  return `(select count(*) from (select 1 from coffer_keys where ${WITH_KEY} ${key} limit ${RARE}) k)`
}

function walkRarest(parts: readonly string[][], order: Order): string {
  const counts = parts.map((keys, at) => `(${at}, ${keys.map(countRare).join(' + ')})`)
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

/** The SQL has a subquery for each row, because for a join the planner could scan the whole table of keys. */
function hasKey(is: string, seq: string): string {
  const one = `select 1 from coffer_keys k where k.tenant = $1 and k.kind = $2 and k.key ${is} and k.seq = ${seq} limit 1`
  return `((${one}) is not null)`
}

/**
 * Looks up the keys of a row in a JSON object. PostgreSQL sorts the names of an object, so this look-up is fast. A
 * search in an array reads every value.
 */
function hasOneOf(keys: readonly Uint8Array[], parameter: Parameter): string {
  const names = Object.fromEntries(keys.map((key) => [Buffer.from(key).toString('hex'), 0]))
  const one = `select 1 from ${eachKey('r.keys', 2)} where ${parameter(JSON.stringify(names))}::jsonb ? encode(${keyAt('r.keys')}, 'hex') limit 1`
  return `((${one}) is not null)`
}

/** The `limit` clause makes the planner look up rows one by one, independently of the statistics of the tables. */
function eachRow(is: string): string {
  return `cross join lateral (select * from coffer_rows r where ${is} limit 1) r`
}

function flatten(where: Where): Where[] {
  return 'and' in where ? where.and.flatMap(flatten) : [where]
}

/** Returns keys: every match has at least one of these keys. Returns no keys if the condition requires no key. */
function keysOf(where: Where): Uint8Array[] {
  if ('key' in where) return [where.key]
  return 'or' in where && where.or.every((part) => 'key' in part) ? where.or.map(({ key }) => key) : []
}

function condition(where: Where, parameter: Parameter, seq: string): string {
  const keys = keysOf(where)
  if (keys.length > MANY_KEYS) return hasOneOf(keys, parameter)
  if (keys.length > 0) return hasKey(`= any(${parameter(keys)}::bytea[])`, seq)
  if ('ids' in where) return `r.id = any(${parameter([...where.ids])}::bytea[])`
  if ('not' in where) return `not ${condition(where.not, parameter, seq)}`
  if ('range' in where) {
    const column = `r.${where.range}`
    const from = where.from === undefined ? '' : ` and ${column} >= ${parameter(where.from)}`
    const below = where.below === undefined ? '' : ` and ${column} < ${parameter(where.below)}`
    return `(${column} <> 0${from}${below})`
  }
  if ('key' in where) throw new TypeError('keysOf returns the key of this condition.')
  const [parts, word, none] = 'and' in where ? [where.and, ' and ', 'true'] : [where.or, ' or ', 'false']
  return `(${[none, ...parts.map((part) => condition(part, parameter, seq))].join(word)})`
}

/** Reads a tenant's log entries that are in no chain yet, unordered. The limit bounds the work of one query. */
export function readPendingStatement(tenant: number): Statement {
  const found = 'select * from coffer_waiting where tenant = $1 limit 10000'
  return { name: 'pending', text: withState('r.*', found), values: [tenant] }
}

/**
 * Reads a page of the pending log entries of a chain, oldest first. The page begins after the row `after`. The page
 * ends before the time `below`, after `limit` rows, or when its rows have `bytes` bytes.
 */
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
