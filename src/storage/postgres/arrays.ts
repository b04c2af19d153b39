/** Sends rows as parallel arrays in the binary form of the protocol, because `pg` would send bytes as text. */

export const NAME = ['tenant', 'kind', 'id']
/**
 * The id alone identifies a row, because the id is a digest over the tenant, the kind and the id of the record. With
 * this single comparison, the planner can use only one index.
 */
export const IS_ROW = 'r.id = x.id'
export const IS_KEY = 'k.tenant = x.tenant and k.kind = x.kind and k.key = x.id'

const BYTES = ['id', 'keys', 'sealed', 'added', 'gone']
const HEAD_BYTES = 20
const LENGTH_BYTES = 4
const BYTEA = 17
const INT8 = 20

/**
 * Returns SQL that forms rows `x` from array parameters. `first`: the number of the first of these parameters. Each row
 * has a `number`, from 1.
 */
export function unnest(columns: readonly string[], first: number): string {
  const arrays = columns.map(
    (column, at) => `$${first + at}::${BYTES.includes(column) ? 'bytea' : 'bigint'}[]`,
  )
  return `unnest(${arrays.join(', ')}) with ordinality as x (${columns.join(', ')}, number)`
}

/** Returns one encoded array for each column. Requires: no value is null, and numbers are integers. */
export function toArrays(columns: readonly string[], list: readonly object[]): Buffer[] {
  const sizeOf = (value: Uint8Array | number) => (typeof value === 'number' ? 8 : value.length)
  return columns.map((column) => {
    const values = (list as readonly Record<string, Uint8Array | number>[]).map((each) => each[column]!)
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
