import { BoundedMap } from '../../bounded-map.js'
import type { Mac } from '../../crypto/ports.js'
import * as access from '../../domain/access/access.js'
import {
  type ApplicationType,
  type Permission,
  stricterTransform,
  type Transform,
} from '../../domain/access/permissions.js'
import { type Awaitable, andThen } from '../../domain/awaitable.js'
import type { StoreReader } from '../../storage/store.js'

const MAX_CALLERS = 1024
const NAME_BYTES = 32

export type DecidingGrants = access.Grants & { of?: 'session' | 'authorizer' }

export interface Caller extends Decider {
  /** The number of the caller's tenant. An operation accesses no other tenant. */
  tenant: number
  actor: { type: 'application' | 'user' | 'system'; id: string }
  applicationType?: ApplicationType
  /** `id`: the record of the session. A session that is not authorized may do nothing. */
  session?: { id: string; isAuthorized: boolean }
  source?: RightsSource
  /** Its decisions are recorded, so no decision may be skipped, even if its result is known. */
  recordsDecisions?: true
  /** The caller uses tokens, but gets no data, no new keys, and nothing that confirms a guess. */
  isNoReveal?: true
}

/**
 * Where the rights of a caller were read. Time passes between reading rights and using them: a body arrives,
 * code runs, a run waits. Each unit of work therefore asks the source first ({@link currentCaller}).
 */
export interface RightsSource {
  /** Whether the records have not changed since they were read. This check is local and cheap. */
  isCurrent(reader: StoreReader): boolean
  /**
   * Reads the rights again. @throws CofferError `unauthenticated` if the key, the session or the application
   * is gone
   */
  read(reader: StoreReader): Awaitable<Caller>
}

interface Decider {
  /** All of these grants must agree; absent for the owner, who has every permission. */
  grants?: readonly DecidingGrants[]
  /** Whether a decision can depend on the id of a token, not only on its containers. */
  dependsOnId?: boolean
  holds(...permissions: readonly Permission[]): boolean
  holdsEverywhere(permission: Permission): boolean
  /**
   * The strictest transform over the token's containers, by `permission` or else `orBy`; undefined if a
   * container grants neither.
   */
  transform(permission: Permission, target: access.Target, orBy?: Permission): Transform | undefined
}

/** Each of `grants` must grant. The strictest transform applies. */
export function decideBy(...grants: readonly [DecidingGrants, ...DecidingGrants[]]): Decider {
  return {
    grants,
    dependsOnId: grants.some(access.dependsOnId),
    holds: (...permissions) =>
      grants.every((each) => permissions.some((permission) => access.holdsPermission(each, permission))),
    holdsEverywhere: (permission) => grants.every((each) => access.holdsEverywhere(each, permission)),
    transform: (permission, target, orBy) => {
      const [first, ...others] = grants.map((each) => access.decideTransform(each, permission, target, orBy))
      return others.reduce((a, b) => a && b && stricterTransform(a, b), first)
    },
  }
}

export function currentCaller(caller: Caller, reader: StoreReader): Awaitable<Caller> {
  const { source } = caller
  return source === undefined || source.isCurrent(reader) ? caller : source.read(reader)
}

/**
 * A copy of the caller with the result of `change`. The change is applied again when the rights are read
 * again.
 */
export function deriveCaller(caller: Caller, change: (caller: Caller) => Partial<Caller>): Caller {
  const { source } = caller
  const derived = { ...caller, ...change(caller) }
  if (source === undefined) return derived
  const read = (reader: StoreReader) =>
    andThen(source.read(reader), (current) => deriveCaller(current, change))
  return { ...derived, source: { isCurrent: source.isCurrent, read } }
}

/** A copy of the caller for which on each container token:use or `permission` is enough. */
export function withGrant(permission: Permission, caller: Caller): Caller {
  return deriveCaller(caller, ({ transform }) => ({
    transform: (needed, target) => transform(needed, target, needed === 'token:use' ? permission : undefined),
  }))
}

export function maskingCaller(caller: Caller): Caller {
  return deriveCaller(caller, ({ transform }) => ({
    transform: (...about) => {
      const decided = transform(...about)
      return decided && stricterTransform('mask', decided)
    },
  }))
}

export function noRevealCaller(caller: Caller): Caller {
  return deriveCaller(maskingCaller(caller), () => ({ isNoReveal: true }))
}

/**
 * The owner has every permission in the tenant. Data is masked unless `reveal`, so that nothing is shown by
 * accident.
 */
export function ownerCaller(tenant: number, userId: string, { reveal }: { reveal: boolean }): Caller {
  return {
    tenant,
    actor: { type: 'user', id: userId },
    holds: () => true,
    holdsEverywhere: () => true,
    transform: () => (reveal ? 'reveal' : 'mask'),
  }
}

/** The callers of verified keys. A cached caller may be out of date, which its source detects. */
export class CallerCache {
  readonly #callers = new BoundedMap<string, Caller>(MAX_CALLERS)
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

  /** A digest under a secret of this process, so that the time of a look-up reveals nothing about a key. */
  #nameOf(key: string): string {
    return Buffer.from(this.#mac(Buffer.from(key), NAME_BYTES)).toString('latin1')
  }
}
