import type { PropertyErrors } from '../../errors.js'
import type { Lenient } from '../omit-undefined.js'
import { addError } from '../property-errors.js'
import { suggestName } from '../text/nearest.js'
import type { ContainerRule, Rule } from './access.js'
import { isContainerPath } from './container.js'
import { type ApplicationType, PERMISSIONS, type Permission, permissionsOf } from './permissions.js'

export const APPLICATION_TYPES = ['public', 'private', 'management'] as const
export const API_KEY = 'key_'
export const SESSION_KEY = 'key_sess_'
/** The prefix of a key that only the code of one running reactor can use. */
export const RUN_KEY = 'key_run_'

export function isExpired({ expires_at }: { expires_at?: string }, now: number): boolean {
  return expires_at !== undefined && Date.parse(expires_at) <= now
}

type Holder = ApplicationType | 'session'

export interface RequestedGrants<R extends Rule = ContainerRule> {
  permissions?: string[]
  rules?: (Omit<R, 'permissions'> & { permissions: string[] })[]
}

/** If `holder` is absent, every known permission is valid. */
export function checkGrants(
  holder: Holder | undefined,
  { permissions = [], rules = [] }: Lenient<RequestedGrants<Rule>>,
): PropertyErrors {
  const errors: PropertyErrors = {}
  if (permissions.length === 0 && rules.length === 0)
    addError(errors, 'permissions', 'must name at least one permission, unless rules are given')
  checkPermissions(errors, 'permissions', holder, permissions)
  if (holder === 'management' && rules.length > 0)
    addError(errors, 'rules', 'are only for public and private applications')
  const priorities = new Set<number | undefined>()
  rules.forEach((rule, index) => {
    const path = `rules[${index}]`
    const { permissions: granted, container, conditions, priority } = rule ?? {}
    checkPermissions(errors, `${path}.permissions`, holder, granted ?? [])
    if (granted?.length === 0) addError(errors, `${path}.permissions`, 'must name at least one permission')
    if (container !== undefined && !isContainerPath(container))
      addError(errors, `${path}.container`, 'must be a path such as /pci/high/')
    const isChoice = conditions?.length !== 0 && (container === undefined) !== (conditions === undefined)
    if (holder === 'session' && !isChoice)
      addError(errors, `${path}.conditions`, 'must have at least one condition, unless a container is given')
    if (holder !== 'session' && conditions !== undefined)
      addError(
        errors,
        `${path}.conditions`,
        'is not known here: only rules of sessions have conditions. Give a container',
      )
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
  const names = Object.keys(PERMISSIONS)
  const held = holder && permissionsOf(holder === 'session' ? 'private' : holder)
  const named = holder === 'session' ? holder : `${holder} application`
  permissions.forEach((permission, index) => {
    if (permission === undefined) return
    const at = `${path}[${index}]`
    if (!names.includes(permission))
      addError(errors, at, `is not a permission${suggestName(permission, names)}`)
    else if (held?.includes(permission as Permission) === false)
      addError(errors, at, `may not be held by a ${named}: ${permission}`)
  })
}
