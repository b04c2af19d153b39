/**
 * Access rules: which rule of an application decides for a container, and how much it lets somebody see. It knows
 * containers and permissions, not tokens.
 */

import { isContainerWithin } from './container.js'
import { type Permission, stricterTransform, type Transform } from './permissions.js'

/** `priority` from 1, unique in the application; the lower one wins. */
export interface Rule {
  description?: string
  priority: number
  container: string
  transform: Transform
  permissions: Permission[]
}

/** What an application was given: rules, and permissions that act as a last rule on everything. */
export interface Grants {
  rules: readonly Rule[]
  permissions: readonly Permission[]
}

/** Why a rule was passed over for a container. */
export type PassedOver = { priority: number; reason: 'other container' | 'other permissions' }

/** What decided for one container: a rule by its priority, or the plain permissions; or nothing, which is a refusal. */
export interface Decision {
  container: string
  decidedBy?: number | 'permissions'
  transform?: Transform
  passedOver: PassedOver[]
}

/** The first rule by priority that covers `container` and grants `permission`; the plain permissions come last. */
export function decideContainer(grants: Grants, permission: Permission, container: string): Decision {
  const passedOver: PassedOver[] = []
  for (const rule of [...grants.rules].sort((a, b) => a.priority - b.priority)) {
    const reason = refusalOf(rule, permission, container)
    if (reason === undefined)
      return { container, decidedBy: rule.priority, transform: rule.transform, passedOver }
    passedOver.push({ priority: rule.priority, reason })
  }
  if (!grants.permissions.includes(permission)) return { container, passedOver }
  const transform = permission === 'token:use' ? 'reveal' : 'mask'
  return { container, decidedBy: 'permissions', transform, passedOver }
}

function refusalOf(rule: Rule, permission: Permission, container: string): PassedOver['reason'] | undefined {
  if (!isContainerWithin(container, rule.container)) return 'other container'
  return rule.permissions.includes(permission) ? undefined : 'other permissions'
}

/** Every container must be decided, else undefined; with several, the strictest transform wins. */
export function decideTransform(
  grants: Grants,
  permission: Permission,
  containers: readonly string[],
): Transform | undefined {
  let strictest: Transform | undefined
  for (const container of containers) {
    const { transform } = decideContainer(grants, permission, container)
    if (transform === undefined) return undefined
    strictest = strictest === undefined ? transform : stricterTransform(strictest, transform)
  }
  return strictest
}

/** Whether the permission is granted anywhere at all. */
export function holdsPermission({ rules, permissions }: Grants, permission: Permission): boolean {
  return permissions.includes(permission) || rules.some((rule) => rule.permissions.includes(permission))
}
