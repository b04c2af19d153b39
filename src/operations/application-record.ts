/** The record of an application: how it is found and shown, what it may be given, and how its key is drawn and kept. */
import { API_KEY_BYTES, checkApplication, formatApiKey } from '../domain/application.js'
import { formatDate, parseExpiry } from '../domain/dates.js'
import type { ApplicationType, Permission } from '../domain/permissions.js'
import { about, refuseErrors } from '../domain/property-errors.js'
import type { ApplicationRecord } from '../domain/records.js'
import { CofferError } from '../errors.js'
import type { Context } from './operation.js'

/** `key` only where it was just drawn. */
export type ApplicationView = Omit<ApplicationRecord, 'key_hash'> & { key?: string }

/** What callers say that an application is called and may do. */
export interface ApplicationInput {
  name: string
  permissions?: string[]
  rules?: {
    description?: string
    priority: number
    container: string
    transform: 'redact' | 'mask' | 'reveal'
    permissions: string[]
  }[]
  expires_at?: string
}

/** The API's application object. */
export function viewApplication({ key_hash: _, ...view }: ApplicationRecord): ApplicationView {
  return view
}

/** @throws CofferError `not_found` */
export async function requireApplication(
  context: Context,
  applicationId: string,
): Promise<ApplicationRecord> {
  const record = await context.store.get('application', context.caller.tenant, applicationId)
  if (record === undefined) throw new CofferError('not_found', 'There is no application with this id.')
  return record
}

/**
 * What an application of `type` is given, checked, each permission once.
 * @throws CofferError `validation` by property
 */
export function readGrants(context: Context, type: ApplicationType, input: ApplicationInput) {
  const rules = (input.rules ?? []).map((rule) => ({
    ...(rule.description === undefined ? {} : { description: rule.description }),
    priority: rule.priority,
    container: rule.container,
    transform: rule.transform,
    permissions: [...new Set(rule.permissions)] as Permission[],
  }))
  const permissions = [...new Set(input.permissions ?? [])] as Permission[]
  refuseErrors(checkApplication(type, { permissions, rules }))
  const { expires_at: text } = input
  const expires = text === undefined ? undefined : about('expires_at', () => parseExpiry(text, context.now))
  return {
    name: input.name,
    permissions,
    rules,
    ...(expires === undefined ? {} : { expires_at: formatDate(expires) }),
  }
}

/** A new key, which is shown once, and the hash that is kept of it. */
export async function drawKey(context: Context): Promise<{ key: string; hash: string }> {
  const key = formatApiKey(context.random.bytes(API_KEY_BYTES))
  return { key, hash: await context.hashSecret(key) }
}

/** From now on the application's key leads to it. */
export async function keepKey(
  context: Context,
  { key_hash, id: application_id }: ApplicationRecord,
): Promise<void> {
  const entry = { id: key_hash, tenant: context.caller.tenant, application_id }
  await context.store.insert('api_key', 0, entry, { fresh: true })
}
