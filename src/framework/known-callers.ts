/** A cache of callers by API key, so that not every request reads the records of its application. */
import { BoundedMap } from '../bounded-map.js'
import type { Mac } from '../crypto/ports.js'
import type { Caller } from './caller.js'

const MOST_CALLERS = 1024
const NAME_BYTES = 32

/**
 * Valid for one value of the change counter of the records that authentication reads. Entries are found by a digest of
 * the key under a secret of this process, so that the time of a look-up tells nothing about a key.
 */
export class KnownCallers {
  readonly #mac: Mac
  readonly #callers = new BoundedMap<string, Caller>(MOST_CALLERS)
  #counter: number | undefined

  constructor(mac: Mac) {
    this.#mac = mac
  }

  find(key: string, counter: number): Caller | undefined {
    return this.#counter === counter ? this.#callers.get(this.#nameOf(key)) : undefined
  }

  /** Contract: under this change counter `key` belongs to `caller`, and does not expire. */
  keep(key: string, counter: number, caller: Caller): void {
    if (this.#counter !== counter) this.#callers.clear()
    this.#counter = counter
    this.#callers.set(this.#nameOf(key), caller)
  }

  #nameOf(key: string): string {
    return Buffer.from(this.#mac(Buffer.from(key), NAME_BYTES)).toString('latin1')
  }
}
