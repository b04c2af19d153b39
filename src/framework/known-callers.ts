/** A cache of callers by API key, so that not every request reads the records of its application. */
import { BoundedMap } from '../bounded-map.js'
import type { Mac } from '../crypto/ports.js'
import type { Caller } from './caller.js'

const MOST_CALLERS = 1024
const NAME_BYTES = 32

export type KnownCallers = ReturnType<typeof createKnownCallers>

/**
 * Valid for one value of the change counter of the records that authentication reads. Entries are found by a digest of
 * the key under a secret of this process, so that the time of a look-up tells nothing about a key.
 */
export function createKnownCallers(mac: Mac) {
  const callers = new BoundedMap<string, Caller>(MOST_CALLERS)
  let valid: number | undefined
  const nameOf = (key: string) => Buffer.from(mac(Buffer.from(key), NAME_BYTES)).toString('latin1')
  return {
    find: (key: string, counter: number) => (valid === counter ? callers.get(nameOf(key)) : undefined),
    /** Contract: under this change counter `key` belongs to `caller`, and does not expire. */
    keep(key: string, counter: number, caller: Caller): void {
      if (valid !== counter) callers.clear()
      valid = counter
      callers.set(nameOf(key), caller)
    },
  }
}
