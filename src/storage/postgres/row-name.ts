import { toText } from '../bytes.js'
import type { Row } from '../engine.js'

/** `id`: the id of a row, or a key. */
export type RowName = Pick<Row, 'kind' | 'tenant' | 'id'>

/** Stands for the kind in the names of pending log entries, which have their own table. */
export const PENDING = 'pending'

export function nameOf({
  kind,
  tenant,
  id,
}: Omit<RowName, 'kind'> & { kind: number | typeof PENDING }): string {
  return `${kind}/${tenant}/${toText(id)}`
}

export function prefixOf({ kind, tenant }: Omit<RowName, 'id'>): string {
  return `${kind}/${tenant}/`
}
