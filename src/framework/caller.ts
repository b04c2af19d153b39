/** Who asks for an operation, and what they may do. Nothing here says through which door they came. */
import type { Grants } from '../domain/access.js'
import type { Permission, Transform } from '../domain/permissions.js'

export interface Actor {
  type: 'application' | 'user' | 'system'
  id: string
}

export interface Caller {
  /** The number of the tenant that the caller acts in; no operation reaches another. */
  tenant: number
  actor: Actor
  /** What an application was given; absent for the owner, who was given everything. */
  grants?: Grants
  /** Whether the caller has the permission at all, on whatever container. */
  holds(permission: Permission): boolean
  /** Whether the caller has it whatever the container. */
  holdsEverywhere(permission: Permission): boolean
  /** How much may be seen where `permission` is used on all of `containers`; undefined where it is not granted. */
  transform(permission: Permission, containers: readonly string[]): Transform | undefined
}

/**
 * The person who can unlock the vault: every permission in the tenant. Data is shown masked unless they ask for it,
 * so that a secret never stands on a screen by accident.
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
