/**
 * Only the record of a tenant contains the keys, name and id of the tenant. If the record is lost, only the number of
 * the tenant is known.
 */

export interface LostTenant {
  tenant: number
  rows: number
}

export class LostTenants {
  readonly #rows = new Map<number, number>()

  count(tenant: number): void {
    this.#rows.set(tenant, (this.#rows.get(tenant) ?? 0) + 1)
  }

  list(): LostTenant[] {
    const counted = [...this.#rows].map(([tenant, rows]) => ({ tenant, rows }))
    return counted.sort((left, right) => left.tenant - right.tenant)
  }
}

export const AFTER_LOST_KEYS = 'Restore a backup: coffer vault restore FILE --vault NEW'

export function describeLostTenant({ tenant, rows }: LostTenant): string {
  const unread = rows === 1 ? 'its only row cannot be read' : `none of its ${rows} rows can be read`
  return `The keys of tenant number ${tenant} are lost, so ${unread}.`
}

const NAMED = 10

export function describeLostTenants(lost: readonly LostTenant[]): string {
  const sentences = lost.slice(0, NAMED).map(describeLostTenant)
  const more = lost.length - NAMED
  if (more === 1) sentences.push('The keys of 1 more tenant are lost too.')
  if (more > 1) sentences.push(`The keys of ${more} more tenants are lost too.`)
  return [...sentences, AFTER_LOST_KEYS].join(' ')
}
