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
  /** The number of the tenant. An operation can access only the data of this tenant. */
  tenant: number
  actor: { type: 'application' | 'user' | 'system'; id: string }
  applicationType?: ApplicationType
  /** A session that is not authorized yet may do nothing. */
  session?: { id: string; isAuthorized: boolean }
  source?: RightsSource
  /**
   * Decisions about the caller are recorded. Therefore code must not skip a decision whose result is known in advance.
   */
  recordsDecisions?: true
  /**
   * The caller can use tokens, but gets no data, no new keys, and no answer that confirms a guess of the
   * data.
   */
  isNoReveal?: true
  /** The caller is the code of a run, which cannot start another run. */
  isOfRun?: true
}

/**
 * The source from which the rights of a caller were read. The rights can change before their use, for example while
 * code runs. Therefore each unit of work first checks the rights ({@link currentCaller}).
 */
export interface RightsSource {
  /** Returns whether the records of the caller are unchanged. The check is local and cheap. */
  isCurrent(reader: StoreReader): boolean
  /** @throws CofferError `unauthenticated` if the key, the session or the application no longer exists */
  read(reader: StoreReader): Awaitable<Caller>
}

interface Decider {
  /**
   * The caller has a permission only if each of these grants contains the permission. Absent for the owner, who has
   * every permission.
   */
  grants?: readonly DecidingGrants[]
  dependsOnId?: boolean
  holds(...permissions: readonly Permission[]): boolean
  holdsEverywhere(permission: Permission): boolean
  /**
   * Returns the strictest transform on the containers of the token. On a container without a grant of `permission`, the
   * grant of `orBy` counts. Returns undefined if one of the containers has neither grant.
   */
  transform(permission: Permission, target: access.Target, orBy?: Permission): Transform | undefined
}

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

/** Returns a copy with the members that `change` returns. If the rights are read again, `change` is applied again. */
export function deriveCaller(caller: Caller, change: (caller: Caller) => Partial<Caller>): Caller {
  const { source } = caller
  const derived = { ...caller, ...change(caller) }
  if (source === undefined) return derived
  const read = (reader: StoreReader) =>
    andThen(source.read(reader), (current) => deriveCaller(current, change))
  return { ...derived, source: { isCurrent: source.isCurrent, read } }
}

/** Returns a copy of the caller, for which a grant of `permission` replaces a missing grant of token:use. */
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
 * The owner has every permission in the tenant. Without `reveal`, data is masked, so that no command shows data by
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

/** The rights of a cached caller can be out of date. The rights source of the caller detects this. */
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

  /** Requires: `caller` was read when the records had this `version`, and the key does not expire. */
  put(key: string, version: number, caller: Caller): void {
    if (this.#version !== version) this.#callers.clear()
    this.#version = version
    this.#callers.set(this.#nameOf(key), caller)
  }

  /** Returns a keyed digest, so that the time of a look-up reveals nothing about the API key. */
  #nameOf(key: string): string {
    return Buffer.from(this.#mac(Buffer.from(key), NAME_BYTES)).toString('latin1')
  }
}
