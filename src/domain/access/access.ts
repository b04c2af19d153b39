import { type Permission, stricterTransform, type Transform, USE_PERMISSIONS } from './permissions.js'

export const CONDITION_ATTRIBUTES = ['id', 'container'] as const
export const CONDITION_OPERATORS = ['equals', 'starts_with'] as const

export interface RuleCondition {
  attribute: (typeof CONDITION_ATTRIBUTES)[number]
  operator: (typeof CONDITION_OPERATORS)[number]
  value: string
}

/**
 * `priority` is unique and at least 1. The rule with the lowest `priority` is checked first. A rule has either a
 * container or conditions. All conditions of a rule must be true.
 */
export interface Rule {
  description?: string
  priority: number
  container?: string
  conditions?: RuleCondition[]
  transform: Transform
  permissions: Permission[]
}

export type ContainerRule = Omit<Rule, 'conditions'> & { container: string }

/** `permissions` apply to the containers for which no rule decides. */
export interface Grants {
  rules: readonly Rule[]
  permissions: readonly Permission[]
}

/** `id` is absent if the vault generates the id of the token after the decision. */
export interface Target {
  id?: string | undefined
  containers: readonly string[]
}

export interface PassedOver {
  priority: number
  reason: 'other container' | 'other permissions' | 'condition does not hold'
  condition?: RuleCondition
}

/**
 * The first rule that covers `container` and grants `permission` decides. If no rule does, `grants.permissions`
 * decides. `id`: the id of the token.
 */
export function decideContainer(grants: Grants, permission: Permission, container: string, id?: string) {
  const passedOver: PassedOver[] = []
  for (const rule of [...grants.rules].sort((a, b) => a.priority - b.priority)) {
    const refusal = refusalOf(rule, permission, container, id)
    if (refusal === undefined) return { decidedBy: rule.priority, transform: rule.transform, passedOver }
    passedOver.push({ priority: rule.priority, ...refusal })
  }
  if (!grants.permissions.includes(permission)) return { passedOver }
  const isInPlain = USE_PERMISSIONS.includes(permission) || permission.endsWith(':reveal')
  const transform: Transform = isInPlain ? 'reveal' : 'mask'
  return { decidedBy: 'permissions' as const, transform, passedOver }
}

function refusalOf(
  { container: covered, conditions, permissions }: Rule,
  permission: Permission,
  container: string,
  id: string | undefined,
): Omit<PassedOver, 'priority'> | undefined {
  const condition = conditions?.find((each) => !holds(each, container, id))
  if (condition !== undefined) return { reason: 'condition does not hold', condition }
  // A rule that has neither a container nor conditions covers no container.
  const isCovered = covered === undefined ? conditions !== undefined : container.startsWith(covered)
  if (!isCovered) return { reason: 'other container' }
  return permissions.includes(permission) ? undefined : { reason: 'other permissions' }
}

function holds({ attribute, operator, value }: RuleCondition, container: string, id?: string): boolean {
  const text = attribute === 'id' ? id : container
  if (text === undefined) return false
  return operator === 'equals' ? text === value : text.startsWith(value)
}

export function decideTransform(
  grants: Grants,
  permission: Permission,
  { id, containers }: Target,
  orBy?: Permission,
): Transform | undefined {
  let strictest: Transform | undefined
  for (const container of containers) {
    const decide = (by: Permission) => decideContainer(grants, by, container, id).transform
    const transform = decide(permission) ?? (orBy && decide(orBy))
    if (transform === undefined) return undefined
    strictest = strictest === undefined ? transform : stricterTransform(strictest, transform)
  }
  return strictest
}

export function holdsPermission({ rules, permissions }: Grants, permission: Permission): boolean {
  return permissions.includes(permission) || rules.some((rule) => rule.permissions.includes(permission))
}

export function holdsEverywhere({ rules, permissions }: Grants, permission: Permission): boolean {
  const unconditional = rules.filter(({ conditions }) => conditions === undefined)
  return decideContainer({ rules: unconditional, permissions }, permission, '/').transform !== undefined
}

/** Returns the containers in which the permission can be granted. Each result includes the containers below it. */
export function areasOf({ rules, permissions }: Grants, permission: Permission): string[] {
  if (permissions.includes(permission)) return ['/']
  return [...new Set(rules.filter((rule) => rule.permissions.includes(permission)).map(areaOf))]
}

function areaOf({ container, conditions = [] }: Rule): string {
  const tests = conditions.filter(({ attribute }) => attribute === 'container').map(({ value }) => value)
  // The value of a condition may end in the middle of a segment, for example `/pci/car`. Therefore the text after the
  // last slash is removed.
  const areas = [...tests, container ?? '/'].map((text) => text.slice(0, text.lastIndexOf('/') + 1) || '/')
  return areas.reduce((deepest, area) => (area.length > deepest.length ? area : deepest))
}

export function dependsOnId({ rules }: Grants): boolean {
  return rules.some(({ conditions = [] }) => conditions.some(({ attribute }) => attribute === 'id'))
}
