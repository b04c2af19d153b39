/** Access rules: which rule of an application applies to a container, and how much of the data it shows. */

import { isContainerWithin } from './container.js'
import { type Permission, stricterTransform, type Transform, USE_PERMISSIONS } from './permissions.js'

/** `priority` starts at 1 and is unique in the application; the lowest number is evaluated first. */
export interface Rule {
  description?: string
  priority: number
  container: string
  transform: Transform
  permissions: Permission[]
}

/** The rights of an application: rules, and permissions that act as a last rule for all containers. */
export interface Grants {
  rules: readonly Rule[]
  permissions: readonly Permission[]
}

/** Why a rule did not apply to a container. */
export type PassedOver = { priority: number; reason: 'other container' | 'other permissions' }

/** The result for one container: `decidedBy` is the priority of the rule that applied; absent if access is refused. */
export interface Decision {
  container: string
  decidedBy?: number | 'permissions'
  transform?: Transform
  passedOver: PassedOver[]
}

/** Applies the first rule by priority that covers `container` and grants `permission`, else the plain permissions. */
export function decideContainer(grants: Grants, permission: Permission, container: string): Decision {
  const passedOver: PassedOver[] = []
  for (const rule of [...grants.rules].sort((a, b) => a.priority - b.priority)) {
    const reason = refusalOf(rule, permission, container)
    if (reason === undefined)
      return { container, decidedBy: rule.priority, transform: rule.transform, passedOver }
    passedOver.push({ priority: rule.priority, reason })
  }
  if (!grants.permissions.includes(permission)) return { container, passedOver }
  const transform = USE_PERMISSIONS.includes(permission) ? 'reveal' : 'mask'
  return { container, decidedBy: 'permissions', transform, passedOver }
}

function refusalOf(rule: Rule, permission: Permission, container: string): PassedOver['reason'] | undefined {
  if (!isContainerWithin(container, rule.container)) return 'other container'
  return rule.permissions.includes(permission) ? undefined : 'other permissions'
}

/** The strictest transform over all `containers`; undefined if access to any of them is refused. */
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

/** Whether any rule or the plain permissions grant the permission. */
export function holdsPermission({ rules, permissions }: Grants, permission: Permission): boolean {
  return permissions.includes(permission) || rules.some((rule) => rule.permissions.includes(permission))
}
