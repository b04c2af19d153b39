/** Validation of applications: the permissions of each type, rules, and their keys. */
import type { PropertyErrors } from '../../errors.js'
import type { Lenient } from '../omit-undefined.js'
import { addError } from '../property-errors.js'
import { suggestName } from '../text/nearest.js'
import type { ContainerRule, Rule } from './access.js'
import { isContainerPath } from './container.js'
import { type ApplicationType, PERMISSIONS, type Permission } from './permissions.js'

export const APPLICATION_TYPES = ['public', 'private', 'management'] as const
export const MAX_RULES = 100
export const MAX_KEYS = 20
/** The prefix of API keys. */
export const API_KEY = 'key_'

/** A holder of permissions; a session may have the permissions of private applications. */
type Holder = ApplicationType | 'session'

export function mayHold(holder: Holder, permission: Permission): boolean {
  const type = holder === 'session' ? 'private' : holder
  return (PERMISSIONS[permission].application_types as readonly string[]).includes(type)
}

/** The rights that a caller requests for an application, or for a session. */
export interface RequestedGrants<R extends Rule = ContainerRule> {
  permissions?: string[]
  rules?: (Omit<R, 'permissions'> & { permissions: string[] })[]
}

/** Returns all errors in the requested rights by property path. Without `holder`, permissions of any are accepted. */
export function checkGrants(
  holder: Holder | undefined,
  { permissions = [], rules = [] }: Lenient<RequestedGrants<Rule>>,
): PropertyErrors {
  const errors: PropertyErrors = {}
  if (permissions.length === 0 && rules.length === 0)
    addError(errors, 'permissions', 'must name at least one permission, unless rules are given')
  checkPermissions(errors, 'permissions', holder, permissions)
  if (holder === 'management' && rules.length > 0)
    addError(errors, 'rules', 'are for public and private applications')
  const priorities = new Set<number | undefined>()
  rules.forEach((rule, index) => {
    const path = `rules[${index}]`
    const { permissions: granted, container, conditions, priority } = rule ?? {}
    checkPermissions(errors, `${path}.permissions`, holder, granted ?? [])
    if (granted?.length === 0) addError(errors, `${path}.permissions`, 'must name at least one permission')
    if (container !== undefined && !isContainerPath(container))
      addError(errors, `${path}.container`, 'must be a path such as /pci/high/')
    if (holder === 'session' && (container === undefined) === (conditions === undefined))
      addError(errors, `${path}.conditions`, 'must be given, or else a container')
    if (holder !== 'session' && conditions !== undefined)
      addError(errors, `${path}.conditions`, 'is not known here: only rules of sessions have conditions')
    else if (conditions?.length === 0) addError(errors, `${path}.conditions`, 'must have at least 1 item')
    if (priority !== undefined && priorities.has(priority))
      addError(errors, `${path}.priority`, 'must be unique')
    priorities.add(priority)
  })
  return errors
}

function checkPermissions(
  errors: PropertyErrors,
  path: string,
  holder: Holder | undefined,
  permissions: readonly (string | undefined)[],
): void {
  permissions.forEach((permission, index) => {
    if (permission === undefined) return
    if (!Object.hasOwn(PERMISSIONS, permission))
      addError(
        errors,
        `${path}[${index}]`,
        `is not a permission${suggestName(permission, Object.keys(PERMISSIONS))}`,
      )
    else if (holder !== undefined && !mayHold(holder, permission as Permission)) {
      const whom = holder === 'session' ? holder : `${holder} application`
      addError(errors, `${path}[${index}]`, `may not be held by a ${whom}: ${permission}`)
    }
  })
}
