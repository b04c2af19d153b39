import {
  decideTransform,
  dependsOnId,
  type Grants,
  holdsEverywhere,
  holdsPermission,
  type Target,
} from '../../domain/access/access.js'
import {
  type ApplicationType,
  type Permission,
  stricterTransform,
  type Transform,
} from '../../domain/access/permissions.js'
import type { CachedCaller } from './cached-caller.js'

/** Grants, and whose they are if more than one decides. */
export type DecidingGrants = Grants & { of?: 'session' | 'authorizer' }

export interface Caller extends Decider {
  /** The number of the caller's tenant; an operation accesses no other. */
  tenant: number
  actor: { type: 'application' | 'user' | 'system'; id: string }
  /** The application whose key is used; absent for the owner. */
  applicationType?: ApplicationType
  /** Present for a session of the application: the id of its record. Before it is authorized it may do nothing. */
  session?: { id: string; isAuthorized: boolean }
  cached?: CachedCaller<Caller>
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
  transform(permission: Permission, target: Target, orBy?: Permission): Transform | undefined
}

/** Decides by all of `grants`: each must grant, and the strictest transform holds. */
export function decideBy(...grants: readonly [DecidingGrants, ...DecidingGrants[]]): Decider {
  return {
    grants,
    dependsOnId: grants.some(dependsOnId),
    holds: (...permissions) =>
      grants.every((each) => permissions.some((permission) => holdsPermission(each, permission))),
    holdsEverywhere: (permission) => grants.every((each) => holdsEverywhere(each, permission)),
    transform: (permission, target, orBy) => {
      const [first, ...others] = grants.map((each) => decideTransform(each, permission, target, orBy))
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

/** A copy of the caller that sees masked what its rules reveal. */
export function maskingCaller(caller: Caller): Caller {
  return {
    ...caller,
    transform: (...about) => {
      const transform = caller.transform(...about)
      return transform && stricterTransform('mask', transform)
    },
  }
}

/** A copy of the caller in no-reveal mode. */
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
