/** A cached caller may be out of date: the first unit compares the version, and `retryIfStale` retries once. */
import { BoundedMap } from '../../bounded-map.js'
import type { Mac } from '../../crypto/ports.js'
import { CofferError } from '../../errors.js'

const MOST_CALLERS = 1024
const NAME_BYTES = 32

export class CallerCache<Caller> {
  readonly #callers = new BoundedMap<string, Caller>(MOST_CALLERS)
  readonly #mac: Mac
  #version: number | undefined

  constructor(mac: Mac) {
    this.#mac = mac
  }

  find(key: string, version: number): Caller | undefined {
    return this.#version === version ? this.#callers.get(this.#nameOf(key)) : undefined
  }

  /** Contract: in this version `key` belongs to `caller`, and does not expire. */
  put(key: string, version: number, caller: Caller): void {
    if (this.#version !== version) this.#callers.clear()
    this.#version = version
    this.#callers.set(this.#nameOf(key), caller)
  }

  /** A digest under a secret of this process, so that the time of a look-up tells nothing about a key. */
  #nameOf(key: string): string {
    return Buffer.from(this.#mac(Buffer.from(key), NAME_BYTES)).toString('latin1')
  }
}

/** The state of a cached caller that is to be compared with the store. */
export interface CachedCaller<Caller> {
  readonly version: number
  /** Whether a unit of work has found the version unchanged: a failure from then on is not due to the cache. */
  isCurrent: boolean
  /** Authenticates anew. @throws CofferError `unauthenticated` */
  readonly renew: () => Promise<Caller>
}

class StaleCaller extends CofferError {
  constructor() {
    super('unavailable', 'What is known of the API key is out of date. Try again.', { retryAfterSeconds: 1 })
  }
}

/** Contract: called first in every unit of work, whose engine confirms the present version. */
export function requireCurrent(cached: CachedCaller<unknown>, present: number | undefined): void {
  cached.isCurrent = present === cached.version
  if (!cached.isCurrent) throw new StaleCaller()
}

/** Runs `work`, and once more for the caller as the store has it now if the failure may be due to the cache. */
export async function retryIfStale<Caller extends { cached?: CachedCaller<Caller> }, T>(
  caller: Caller,
  work: (caller: Caller) => T | Promise<T>,
): Promise<T> {
  const { cached } = caller
  if (cached === undefined) return work(caller)
  try {
    return await work(caller)
  } catch (error) {
    if (cached.isCurrent && !(error instanceof StaleCaller)) throw error
    return work(await cached.renew())
  }
}
