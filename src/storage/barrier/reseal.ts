/**
 * Taking a vault's rows from the keys it has to others: each record is opened, sealed and digested anew. It knows
 * records and keys; walking the files is the engine's.
 */
import type { RecordKeys, VaultKeys } from '../../crypto/ports.js'
import { chainOf, isBlock } from '../../domain/records/index-fields.js'
import { KINDS, kindOf, type RecordOf, type TenantKeyBytes } from '../../domain/records/records.js'
import { damaged } from '../../errors.js'
import type { CheckRow, Resealed, Row } from '../engine.js'
import { digestId, idOf, keysOfRecord, openRecord, openTenantKeys, sealRecord, unseal } from './sealing.js'

/** Search index values are kept as digests alone, so they have to be rendered again. */
export type RenderSearch = (token: RecordOf['token']) => Promise<string[]>

export interface ResealOptions {
  present: VaultKeys
  next: VaultKeys
  /** The keys of every tenant, as its record holds them. */
  tenants: ReadonlyMap<number, TenantKeyBytes>
  /** As its record will hold them, the same whenever it is called; default: as they are. */
  renew?(tenant: number, present: TenantKeyBytes): TenantKeyBytes
  renderSearch: RenderSearch
  /** Logs are not resealed but written anew, in the first chain alone. */
  logsAnew?: boolean
}

export function createReseal(options: ResealOptions): (row: Row) => Promise<Resealed> {
  const { present, next, renderSearch, renew = (_, keys) => keys } = options
  const opened = new Map<number, { present: RecordKeys; next: RecordKeys }>()
  opened.set(0, { present: present.vault, next: next.vault })
  for (const [number, keys] of options.tenants) {
    const renewed = openTenantKeys(next, renew(number, keys))
    opened.set(number, { present: openTenantKeys(present, keys), next: renewed })
  }
  return async (row) => {
    const kind = kindOf(row.kind)
    const keys = requireTenant(opened, row.tenant)
    let record = openRecord(keys.present, row)
    if (kind === 'tenant') {
      const tenant = record as RecordOf['tenant']
      const { log_chains: chains, ...rest } = tenant
      const listed = chains === undefined || options.logsAnew ? {} : { log_chains: chains }
      record = { ...rest, ...listed, keys: renew(tenant.number, tenant.keys) }
    }
    const id = digestId(keys.next, kind, row.tenant, idOf(record))
    const search = kind === 'token' ? await renderSearch(record as RecordOf['token']) : []
    return {
      id,
      keys: keysOfRecord(keys.next, kind, record, search),
      sealed: sealRecord(keys.next, { id, rev: row.rev }, record),
    }
  }
}

/** The keys of every tenant, as its record holds them. Records that do not open are left out. */
export async function readTenantKeys(
  keys: VaultKeys,
  rows: AsyncIterable<Row>,
): Promise<Map<number, TenantKeyBytes>> {
  const tenants = new Map<number, TenantKeyBytes>()
  for await (const row of rows) {
    if (row.kind !== KINDS.tenant || unseal(keys.vault, row) === undefined) continue
    const tenant = openRecord(keys.vault, row) as RecordOf['tenant']
    tenants.set(tenant.number, tenant.keys)
  }
  return tenants
}

/** A log's head and its parts have fewer bytes than this. */
const SMALL_BYTES = 1024

/**
 * Says what is wrong with a row's seal. Tenants' keys are taken from their records as they pass by, and the ends of their
 * logs: `learn` over all rows first, then `check`.
 */
export function createRowCheck(keys: VaultKeys): { learn: CheckRow; check: CheckRow } {
  const tenants = new Map<number, RecordKeys>()
  const small: Row[] = []
  let joined: Map<string, number> | undefined
  return {
    learn(row) {
      if (row.kind === KINDS.log_block && row.sealed.length < SMALL_BYTES) small.push(row)
      if (row.kind !== KINDS.tenant || row.tenant !== 0 || unseal(keys.vault, row) === undefined) return {}
      const tenant = openRecord(keys.vault, row) as RecordOf['tenant']
      tenants.set(tenant.number, openTenantKeys(keys, tenant.keys))
      return {}
    },
    check(row) {
      joined ??= findJoined(small, tenants)
      const opened = row.tenant === 0 ? keys.vault : tenants.get(row.tenant)
      if (opened === undefined)
        return { problem: `a record of tenant ${row.tenant}, whose keys cannot be read` }
      if (unseal(opened, row) === undefined) return { problem: 'a record does not open with its key' }
      if (row.kind !== KINDS.log_block) return {}
      const record = openRecord(opened, row) as RecordOf['log_block']
      const isCounted =
        'items' in record && (isBlock(record) || record.first >= (joined.get(nameChain(row, record)) ?? 0))
      return { logs: isCounted ? record.items.map(([time]) => time) : [] }
    },
  }
}

/** By chain: how many of its records are in blocks. Parts of these are still there, and hold nothing that counts. */
function findJoined(rows: readonly Row[], tenants: ReadonlyMap<number, RecordKeys>): Map<string, number> {
  const joined = new Map<string, number>()
  for (const row of rows) {
    const keys = tenants.get(row.tenant)
    if (keys === undefined || unseal(keys, row) === undefined) continue
    const record = openRecord(keys, row) as RecordOf['log_block']
    if ('partRecords' in record) joined.set(nameChain(row, record), record.count - record.partRecords)
  }
  return joined
}

function nameChain({ tenant }: Row, record: { id: string }): string {
  return `${tenant}/${chainOf(record)}`
}

function requireTenant<T>(tenants: ReadonlyMap<number, T>, number: number): T {
  const keys = tenants.get(number)
  if (keys !== undefined) return keys
  throw damaged('The record of a tenant is missing')
}
