/**
 * A caller as an earlier request found it, in a store that other processes change: believed until the first unit of work,
 * which checks it in the round trip that it takes anyway.
 */
import { CofferError } from '../errors.js'
import { isPromise, type MaybePromise } from '../maybe-promise.js'
import type { StoreReader } from '../storage/store.js'

/** The records that made the caller may have changed: it is authenticated again. */
class OutOfDate extends CofferError {
  constructor() {
    super('unavailable', 'What is known of the API key is out of date. Try again.', { retryAfterSeconds: 1 })
  }
}

export interface Belief<Caller> {
  /** Contract: called first in every unit of work, whose engine confirms what the counter says. */
  check(reader: StoreReader): void
  /** Whether `error` may come from believing what is no longer so. Once a unit of work has checked it, none does. */
  mayExplain(error: unknown): boolean
  /** The same belief, of what `change` makes of the caller. */
  as(change: (caller: Caller) => Caller): Belief<Caller>
  /** The caller as the store has it now. @throws CofferError `unauthenticated` */
  renew(): Promise<Caller>
}

/** `counterOf` gives the change counter of the records that made the caller, which was `counter`. */
export function createBelief<Caller>(
  counterOf: (reader: StoreReader) => number | undefined,
  counter: number,
  renew: () => Promise<Caller>,
): Belief<Caller> {
  let isChecked = false
  return {
    check(reader) {
      if (counterOf(reader) !== counter) throw new OutOfDate()
      isChecked = true
    },
    mayExplain: (error) => error instanceof OutOfDate || !isChecked,
    as: (change) => createBelief(counterOf, counter, async () => change(await renew())),
    renew,
  }
}

/** What `work` gives for the caller; it is done again where it fails for a caller that is only believed. */
export function withCertainty<Caller extends { belief?: Belief<Caller> }, T>(
  caller: Caller,
  work: (caller: Caller) => MaybePromise<T>,
): MaybePromise<T> {
  const { belief } = caller
  if (belief === undefined) return work(caller)
  const workAgain = async (error: unknown) => {
    if (!belief.mayExplain(error)) throw error
    return work(await belief.renew())
  }
  try {
    const done = work(caller)
    return isPromise(done) ? done.catch(workAgain) : done
  } catch (error) {
    return workAgain(error)
  }
}
