/** Validation of applications: the permissions of each type, rules, and the format of API keys. */
import type { PropertyErrors } from '../errors.js'
import type { ContainerRule } from './access.js'
import { base58 } from './base58.js'
import { isContainerPath } from './container.js'
import type { Lenient } from './omit-undefined.js'
import { type ApplicationType, PERMISSIONS, type Permission } from './permissions.js'
import { addError } from './property-errors.js'
import type { ApplicationKey, ApplicationRecord } from './records.js'

export const APPLICATION_TYPES = ['public', 'private', 'management'] as const
export const MAX_RULES = 100
export const MAX_KEYS = 20
/** 128 random bits. */
export const API_KEY_BYTES = 16

const API_KEY_LENGTH = 22
const API_KEY = /^key_[1-9A-HJ-NP-Za-km-z]{22}$/

/** `key_` and 22 base58 characters. */
export function formatApiKey(bytes: Uint8Array): string {
  return `key_${base58(bytes, API_KEY_LENGTH)}`
}

/** Whether the text has the format of a key; callers hash nothing else. */
export function isApiKey(text: string): boolean {
  return API_KEY.test(text)
}

/** The keys of the application, newest first. The key of a record without key ids has the application's id. */
export function keysOf(record: ApplicationRecord): readonly ApplicationKey[] {
  const { id, keys, key_hash, created_by, created_at } = record
  return keys ?? (key_hash === undefined ? [] : [{ id, hash: key_hash, created_by, created_at }])
}

export function mayHold(type: ApplicationType, permission: Permission): boolean {
  return (PERMISSIONS[permission].application_types as readonly string[]).includes(type)
}

/** The rights that a caller requests for an application. */
export interface RequestedGrants {
  permissions?: string[]
  rules?: (Omit<ContainerRule, 'permissions'> & { permissions: string[] })[]
}

/** All errors in the requested rights by property path. Without `type`, permissions of any type are accepted. */
export function checkApplication(
  type: ApplicationType | undefined,
  { permissions = [], rules = [] }: Lenient<RequestedGrants>,
): PropertyErrors {
  const errors: PropertyErrors = {}
  if (permissions.length === 0 && rules.length === 0) {
    addError(errors, 'permissions', 'must name at least one permission, unless rules are given')
  }
  checkPermissions(errors, 'permissions', type, permissions)
  if (type === 'management' && rules.length > 0)
    addError(errors, 'rules', 'are for public and private applications')
  const priorities = new Set<number | undefined>()
  rules.forEach((rule, index) => {
    const path = `rules[${index}]`
    const { permissions: granted, container, priority } = rule ?? {}
    checkPermissions(errors, `${path}.permissions`, type, granted ?? [])
    if (granted?.length === 0) addError(errors, `${path}.permissions`, 'must name at least one permission')
    if (container !== undefined && !isContainerPath(container))
      addError(errors, `${path}.container`, 'must be a path such as /pci/high/')
    if (priority !== undefined && priorities.has(priority))
      addError(errors, `${path}.priority`, 'must be unique in the application')
    priorities.add(priority)
  })
  return errors
}

function checkPermissions(
  errors: PropertyErrors,
  path: string,
  type: ApplicationType | undefined,
  permissions: readonly (string | undefined)[],
): void {
  permissions.forEach((permission, index) => {
    if (permission === undefined) return
    if (!Object.hasOwn(PERMISSIONS, permission)) addError(errors, `${path}[${index}]`, 'is not a permission')
    else if (type !== undefined && !mayHold(type, permission as Permission)) {
      addError(errors, `${path}[${index}]`, `may not be held by a ${type} application`)
    }
  })
}
