import type { Mac } from '../crypto/ports.js'
import { CofferError } from '../errors.js'
import type { Row, VaultRows } from './engine.js'

const DIGEST_BYTES = 16
const MASK = (1n << 128n) - 1n
const STRIDE = 1000

export interface RowTarget {
  put(rows: AsyncIterable<Row>): Promise<void>
  read(): AsyncIterable<Row>
}

/** A checksum that does not depend on the order of rows. Omits `keys`, because rows read from files have no keys. */
export class RowChecksum {
  readonly #mac: Mac
  count = 0
  #sum = 0n

  constructor(mac: Mac) {
    this.#mac = mac
  }

  add({ kind, tenant, id, seq, rev, created, modified, expires, sealed }: Row): void {
    const numbers = JSON.stringify([kind, tenant, seq, rev, created, modified, expires])
    const digest = this.#mac(Buffer.concat([Buffer.from(numbers), id, sealed]), DIGEST_BYTES)
    this.#sum = (this.#sum + BigInt(`0x${Buffer.from(digest).toString('hex')}`)) & MASK
    this.count++
  }

  get digest(): string {
    return this.#sum.toString(16).padStart(2 * DIGEST_BYTES, '0')
  }
}

/** `total` is approximate. */
export type Progress = (done: number, total: number) => void

export async function copyAndVerify(
  source: Pick<VaultRows, 'count' | 'rows'>,
  target: RowTarget,
  mac: Mac,
  progress: Progress,
): Promise<RowChecksum> {
  const sent = new RowChecksum(mac)
  async function* counted(): AsyncGenerator<Row> {
    for await (const row of source.rows()) {
      sent.add(row)
      if (sent.count % STRIDE === 0) progress(sent.count, Math.max(source.count, sent.count))
      yield row
    }
  }
  await target.put(counted())
  progress(sent.count, sent.count)
  const arrived = new RowChecksum(mac)
  for await (const row of target.read()) arrived.add(row)
  if (arrived.count === sent.count && arrived.digest === sent.digest) return arrived
  throw new CofferError('storage_failed', 'The copied rows differ from the rows that were sent. Try again.')
}

/**
 * Groups rows into batches, in order. A batch ends when it has `most.rows` rows, or when its sealed records have at
 * least `most.bytes` bytes.
 */
export async function* inBatches(
  rows: AsyncIterable<Row>,
  most: { rows: number; bytes: number },
): AsyncGenerator<Row[]> {
  let batch: Row[] = []
  let bytes = 0
  for await (const row of rows) {
    bytes += row.sealed.length
    if (batch.push(row) < most.rows && bytes < most.bytes) continue
    yield batch
    batch = []
    bytes = 0
  }
  if (batch.length > 0) yield batch
}

/** Copies the fields into a plain object, because a row that was decoded from a frame has getters instead of fields. */
export function plainRow({ kind, tenant, id, seq, rev, created, modified, expires, keys, sealed }: Row): Row {
  return { kind, tenant, id, seq, rev, created, modified, expires, keys, sealed }
}
