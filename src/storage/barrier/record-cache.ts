/** Opened records of the kinds that are few and read at every request, valid while no record of their kind changes. */
import type { RecordKeys } from '../../crypto/ports.js'
import { KINDS, type Kind, type RecordOf } from '../../domain/records/records.js'

/** Tokens, logs and whatever else grows without end are never cached. */
const CACHED: ReadonlySet<Kind> = new Set(['tenant', 'settings', 'application', 'api_key', 'containers'])
/** Their numbers, for an engine that counts changes of these kinds only. */
export const CACHED_KINDS: ReadonlySet<number> = new Set([...CACHED].map((kind) => KINDS[kind]))
const MAX_RECORDS = 4096

interface Records {
  counter: number
  /** By tenant and id. */
  records: Map<string, RecordOf[Kind]>
}

export class RecordCache {
  readonly #kinds = new Map<Kind, Records>()
  /** The keys of tenants, by their cached records. */
  readonly #keys = new WeakMap<object, RecordKeys>()

  holds(kind: Kind): boolean {
    return CACHED.has(kind)
  }

  /** The record that {@link put} was given under this change counter of the kind. */
  find(kind: Kind, tenant: number, id: string, counter: number): RecordOf[Kind] | undefined {
    const known = this.#kinds.get(kind)
    return known?.counter === counter ? known.records.get(`${tenant}/${id}`) : undefined
  }

  /** Freezes the record. Contract: it was read under this change counter, and does not expire. */
  put(kind: Kind, tenant: number, id: string, counter: number, record: RecordOf[Kind]): void {
    let known = this.#kinds.get(kind)
    if (known?.counter !== counter || known.records.size >= MAX_RECORDS) {
      known = { counter, records: new Map() }
      this.#kinds.set(kind, known)
    }
    known.records.set(`${tenant}/${id}`, freeze(record))
  }

  keysOf(tenant: RecordOf['tenant'], open: (tenant: RecordOf['tenant']) => RecordKeys): RecordKeys {
    const known = this.#keys.get(tenant)
    if (known !== undefined) return known
    const keys = open(tenant)
    this.#keys.set(tenant, keys)
    return keys
  }

  /** Forgets records of which one was removed, for they may have held keys. */
  forget(kind: Kind): void {
    this.#kinds.delete(kind)
  }

  clear(): void {
    this.#kinds.clear()
  }
}

/** Differs after any change of these kinds; undefined if one of them has no counter. */
export function sumCounters(
  kinds: readonly Kind[],
  counterOf: (kind: number) => number | undefined,
): number | undefined {
  let sum = 0
  for (const kind of kinds) {
    const counter = counterOf(KINDS[kind])
    if (counter === undefined) return undefined
    sum += counter
  }
  return sum
}

/** Freezes all of it, because several callers share it. */
function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const member of Object.values(value)) freeze(member)
  return Object.freeze(value)
}
