/** What an application may be: its type's permissions, its rules, and the shape of its key. Pure checks. */
import type { PropertyErrors } from '../errors.js'
import type { Rule } from './access.js'
import { isContainerPath } from './container.js'
import { base58 } from './fingerprint.js'
import { type ApplicationType, PERMISSIONS, type Permission } from './permissions.js'
import { addError } from './property-errors.js'

export const APPLICATION_TYPES = ['public', 'private', 'management'] as const
export const MAX_RULES = 100
/** 128 random bits. */
export const API_KEY_BYTES = 16

const API_KEY_LENGTH = 22
const API_KEY = /^key_[1-9A-HJ-NP-Za-km-z]{22}$/

/** `key_` and 22 base58 characters. */
export function formatApiKey(bytes: Uint8Array): string {
  return `key_${base58(bytes, API_KEY_LENGTH)}`
}

/** Whether the text could be a key at all, so that nothing else is ever hashed. */
export function isApiKey(text: string): boolean {
  return API_KEY.test(text)
}

export function mayHold(type: ApplicationType, permission: Permission): boolean {
  return (PERMISSIONS[permission].application_types as readonly string[]).includes(type)
}

/** Every complaint about what an application of `type` asks for, by property path. */
export function checkApplication(
  type: ApplicationType,
  { permissions, rules }: { permissions: readonly string[]; rules: readonly Rule[] },
): PropertyErrors {
  const errors: PropertyErrors = {}
  if (permissions.length === 0 && rules.length === 0) {
    addError(errors, 'permissions', 'must name at least one permission, unless rules are given')
  }
  checkPermissions(errors, 'permissions', type, permissions)
  if (type === 'management' && rules.length > 0)
    addError(errors, 'rules', 'are for public and private applications')
  const priorities = new Set<number>()
  rules.forEach((rule, index) => {
    const path = `rules[${index}]`
    checkPermissions(errors, `${path}.permissions`, type, rule.permissions)
    if (rule.permissions.length === 0)
      addError(errors, `${path}.permissions`, 'must name at least one permission')
    if (!isContainerPath(rule.container))
      addError(errors, `${path}.container`, 'must be a path such as /pci/high/')
    if (priorities.has(rule.priority))
      addError(errors, `${path}.priority`, 'must be unique in the application')
    priorities.add(rule.priority)
  })
  return errors
}

function checkPermissions(
  errors: PropertyErrors,
  path: string,
  type: ApplicationType,
  permissions: readonly string[],
): void {
  permissions.forEach((permission, index) => {
    if (!Object.hasOwn(PERMISSIONS, permission)) addError(errors, `${path}[${index}]`, 'is not a permission')
    else if (!mayHold(type, permission as Permission)) {
      addError(errors, `${path}[${index}]`, `may not be held by a ${type} application`)
    }
  })
}
