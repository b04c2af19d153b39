/**
 * How many rows there are, and a digest over all of them but for the keys that they are found by, which files have in
 * their index alone. It does not depend on the order of rows.
 */
import type { Mac } from '../crypto/ports.js'
import { CofferError } from '../errors.js'
import type { Row } from './engine.js'

const DIGEST_BYTES = 16
const MASK = (1n << 128n) - 1n

export class Tally {
  readonly #mac: Mac
  count = 0
  #sum = 0n

  /** `mac` is keyed, so that nobody without the vault's keys makes other rows of the same digest. */
  constructor(mac: Mac) {
    this.#mac = mac
  }

  add({ kind, tenant, id, seq, rev, created, modified, expires, sealed }: Row): void {
    const numbers = JSON.stringify([kind, tenant, seq, rev, created, modified, expires])
    const digest = this.#mac(Buffer.concat([Buffer.from(numbers), id, sealed]), DIGEST_BYTES)
    this.#sum = (this.#sum + BigInt(`0x${Buffer.from(digest).toString('hex')}`)) & MASK
    this.count++
  }

  /** Hexadecimal. */
  get digest(): string {
    return this.#sum.toString(16).padStart(2 * DIGEST_BYTES, '0')
  }

  equals(other: Tally): boolean {
    return this.count === other.count && this.#sum === other.#sum
  }
}

/**
 * Puts all rows but the first `done`, which an earlier attempt has put; and all of them where what is there then, read
 * again, is not what was sent. Gives what is there. `put` gives what was to be put in all.
 * @throws CofferError `storage_failed` where the two differ all the same
 */
export async function putAndRead(
  done: number,
  put: (first: number) => Promise<Tally>,
  read: () => Promise<Tally>,
): Promise<Tally> {
  for (const first of done === 0 ? [0] : [done, 0]) {
    const sent = await put(first)
    const arrived = await read()
    if (sent.equals(arrived)) return arrived
  }
  throw new CofferError('storage_failed', 'What arrived is not what was sent. Try again.')
}
