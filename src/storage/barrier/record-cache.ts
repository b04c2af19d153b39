/**
 * Caches opened records of kinds that every request reads. A change of one record invalidates all cached records of its
 * kind.
 */
import type { RecordKeys } from '../../crypto/ports.js'
import { KINDS, type Kind, type RecordOf } from '../../domain/records/records.js'

/** Kinds that grow without limit, such as tokens and logs, are never cached. */
const CACHED: ReadonlySet<Kind> = new Set(['tenant', 'settings', 'application', 'api_key', 'containers'])
export const CACHED_KINDS: ReadonlySet<number> = new Set([...CACHED].map((kind) => KINDS[kind]))
const MAX_RECORDS = 4096

interface Records {
  counter: number
  records: Map<string, RecordOf[Kind]>
}

export class RecordCache {
  readonly #kinds = new Map<Kind, Records>()
  readonly #keys = new WeakMap<object, RecordKeys>()

  holds(kind: Kind): boolean {
    return CACHED.has(kind)
  }

  find(kind: Kind, tenant: number, id: string, counter: number): RecordOf[Kind] | undefined {
    const known = this.#kinds.get(kind)
    return known?.counter === counter ? known.records.get(`${tenant}/${id}`) : undefined
  }

  /** Freezes the record. Requires: the record has no expiry, and `counter` was current when the record was read. */
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

  /**
   * Forgets all records of the kind. Must be called after a removal, because keys in the removed record must not stay
   * in memory.
   */
  forget(kind: Kind): void {
    this.#kinds.delete(kind)
  }

  clear(): void {
    this.#kinds.clear()
  }
}

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

/** Freezes the value and all values in it, because several callers share a cached record. */
function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const member of Object.values(value)) freeze(member)
  return Object.freeze(value)
}
