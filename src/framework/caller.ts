/** The caller of an operation and its permissions; the same for commands, HTTP requests and reactor code. */
import type { Grants } from '../domain/access.js'
import { type ApplicationType, type Permission, TRANSFORMS, type Transform } from '../domain/permissions.js'

export interface Actor {
  type: 'application' | 'user' | 'system'
  id: string
}

export interface Caller {
  /** The number of the caller's tenant; an operation accesses no other. */
  tenant: number
  actor: Actor
  /** Of the application whose key is used; absent for the owner. */
  applicationType?: ApplicationType
  /** The application's grants; absent for the owner, who has every permission. */
  grants?: Grants
  /** Whether the caller has the permission on at least one container. */
  holds(permission: Permission): boolean
  /** Whether the caller has the permission on every container. */
  holdsEverywhere(permission: Permission): boolean
  /** The strictest transform of `permission` on `containers`; undefined if one of them does not grant it. */
  transform(permission: Permission, containers: readonly string[]): Transform | undefined
}

/** The same caller where `permission` grants what token:use grants: on each container one of them is enough. */
export function usingBy(permission: Permission, caller: Caller): Caller {
  const decide = (container: string) =>
    caller.transform('token:use', [container]) ?? caller.transform(permission, [container])
  return {
    ...caller,
    transform: (needed, containers) => {
      if (needed !== 'token:use') return caller.transform(needed, containers)
      const decided = containers.map(decide)
      return decided.includes(undefined) ? undefined : TRANSFORMS.find((each) => decided.includes(each))
    },
  }
}

/**
 * The owner of the vault: every permission in the tenant. Data is masked unless `reveal`, so that no secret is
 * displayed by accident.
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
