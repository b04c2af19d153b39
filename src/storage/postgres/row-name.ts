/** What identifies a row; and the same as text, for maps and for prefixes. */
import { toText } from '../bytes.js'
import type { Row } from '../engine.js'

/** `id`: the id of a row, or one of the keys that it is found by. */
export type RowName = Pick<Row, 'kind' | 'tenant' | 'id'>

/** Log entries that are in no chain yet are rows of a table of their own. */
export const PENDING = 'pending'

export function nameOf({
  kind,
  tenant,
  id,
}: Omit<RowName, 'kind'> & { kind: number | typeof PENDING }): string {
  return `${kind}/${tenant}/${toText(id)}`
}

/** The beginning of the names of all rows of a kind and tenant. */
export function prefixOf({ kind, tenant }: Omit<RowName, 'id'>): string {
  return `${kind}/${tenant}/`
}
