import { BoundedMap } from '../../bounded-map.js'
import type { Mac } from '../../crypto/ports.js'
import * as access from '../../domain/access/access.js'
import {
  type ApplicationType,
  type Permission,
  stricterTransform,
  type Transform,
} from '../../domain/access/permissions.js'
import type { Awaitable } from '../../domain/awaitable.js'
import { CofferError } from '../../errors.js'

const MAX_CALLERS = 1024
const NAME_BYTES = 32

/** Grants, and whose they are if more than one decides. */
export type DecidingGrants = access.Grants & { of?: 'session' | 'authorizer' }

export interface Caller extends Decider {
  /** The number of the caller's tenant; an operation accesses no other. */
  tenant: number
  actor: { type: 'application' | 'user' | 'system'; id: string }
  /** The application whose key is used; absent for the owner. */
  applicationType?: ApplicationType
  /** Present for a session of the application: the id of its record. Before it is authorized it may do nothing. */
  session?: { id: string; isAuthorized: boolean }
  cached?: CachedCaller
  /** It uses tokens, but gets no data, no new keys, and nothing that confirms a guess. */
  isNoReveal?: true
}

interface Decider {
  /** The grants that decide, all of which must agree; absent for the owner, who has every permission. */
  grants?: readonly DecidingGrants[]
  /** Whether some decision depends on the id of a token and not on its containers alone. */
  dependsOnId?: boolean
  /** Whether the caller has one of the permissions on at least one container. */
  holds(...permissions: readonly Permission[]): boolean
  /** Whether the caller has the permission on every container of every token. */
  holdsEverywhere(permission: Permission): boolean
  /** The strictest of `permission`, else of `orBy`, on a token's containers; undefined if one grants neither. */
  transform(permission: Permission, target: access.Target, orBy?: Permission): Transform | undefined
}

/** Decides by all of `grants`: each must grant, and the strictest transform holds. */
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

/** A copy of the caller for which `permission` grants what token:use grants: one of them is enough on each container. */
export function withGrant(permission: Permission, caller: Caller): Caller {
  return {
    ...caller,
    transform: (needed, target) =>
      caller.transform(needed, target, needed === 'token:use' ? permission : undefined),
  }
}

export function maskingCaller(caller: Caller): Caller {
  return {
    ...caller,
    transform: (...about) => {
      const transform = caller.transform(...about)
      return transform && stricterTransform('mask', transform)
    },
  }
}

export function noRevealCaller(caller: Caller): Caller {
  const { cached } = caller
  const renewed = cached && { cached: { ...cached, renew: async () => noRevealCaller(await cached.renew()) } }
  return { ...maskingCaller(caller), ...renewed, isNoReveal: true }
}

/** The owner: every permission in the tenant. Data is masked unless `reveal`, so that nothing is shown by accident. */
export function ownerCaller(tenant: number, userId: string, { reveal }: { reveal: boolean }): Caller {
  return {
    tenant,
    actor: { type: 'user', id: userId },
    holds: () => true,
    holdsEverywhere: () => true,
    transform: () => (reveal ? 'reveal' : 'mask'),
  }
}

/** The callers of verified keys. A cached caller may be out of date: {@link retryIfStale} retries once. */
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

  /** A digest under a secret of this process, so that the time of a look-up tells nothing about a key. */
  #nameOf(key: string): string {
    return Buffer.from(this.#mac(Buffer.from(key), NAME_BYTES)).toString('latin1')
  }
}

/** The state of a cached caller that is to be compared with the store. */
export interface CachedCaller {
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
export function requireCurrent(cached: CachedCaller, present: number | undefined): void {
  cached.isCurrent = present === cached.version
  if (!cached.isCurrent) throw new StaleCaller()
}

/** Runs `work`, and once more for the caller as the store has it now if the failure may be due to the cache. */
export function retryIfStale<T>(caller: Caller, work: (caller: Caller) => Awaitable<T>): Awaitable<T> {
  const { cached } = caller
  if (cached === undefined) return work(caller)
  return Promise.resolve(caller)
    .then(work)
    .catch(async (error) => {
      if (cached.isCurrent && !(error instanceof StaleCaller)) throw error
      return work(await cached.renew())
    })
}
