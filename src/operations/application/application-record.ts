/** The record of an application: its view, its grants and its API key. */
import {
  API_KEY_BYTES,
  APPLICATION_TYPES,
  checkApplication,
  formatApiKey,
  type RequestedGrants,
} from '../../domain/application.js'
import { formatDate, parseExpiry } from '../../domain/dates.js'
import type { Lenient } from '../../domain/omit-undefined.js'
import { type ApplicationType, type Permission, TRANSFORMS } from '../../domain/permissions.js'
import { collectLater, refuseErrors } from '../../domain/property-errors.js'
import type { ApplicationRecord } from '../../domain/records.js'
import type { CheckTools, Context } from '../../framework/operation.js'
import { arrayOf, audit, component, date, text, texts, uuid } from '../../framework/output.js'
import type { Infer } from '../../framework/schema.js'

export const applicationOutput = component(
  'Application',
  ['id', 'name', 'type', 'permissions', 'created_at'],
  {
    id: uuid,
    tenant_id: uuid,
    name: text,
    'key?': { ...text, description: 'Shown only when it is created or regenerated.' },
    type: { enum: APPLICATION_TYPES },
    'permissions?': texts,
    'rules?': arrayOf(
      component('Rule', [], {
        'description?': text,
        priority: { type: 'integer', minimum: 1 },
        container: text,
        transform: { enum: TRANSFORMS },
        permissions: texts,
      }),
    ),
    'expires_at?': date,
    ...audit,
  },
)

export type ApplicationView = Infer<typeof applicationOutput>

export interface ApplicationInput extends RequestedGrants {
  name: string
  expires_at?: string
}

export function viewApplication({ key_hash: _, ...view }: ApplicationRecord): ApplicationView {
  return view
}

/**
 * Validates the grants of an application; without `type`, those checks that do not depend on it.
 * @returns when its key expires, ms since the epoch
 * @throws CofferError `validation`
 */
export async function checkGrants(
  type: ApplicationType | undefined,
  input: Lenient<ApplicationInput>,
  tools: CheckTools,
): Promise<number | undefined> {
  const errors = checkApplication(type, input)
  const { expires_at: text } = input
  const expires =
    text === undefined
      ? undefined
      : await collectLater(errors, 'expires_at', async () => parseExpiry(text, await tools.now()))
  refuseErrors(errors)
  return expires
}

/** The grants as stored, without duplicate permissions; `expires` is the result of {@link checkGrants}. */
export function readGrants(
  { name, permissions = [], rules = [] }: ApplicationInput,
  expires: number | undefined,
) {
  return {
    name,
    permissions: [...new Set(permissions)] as Permission[],
    rules: rules.map((rule) => ({ ...rule, permissions: [...new Set(rule.permissions)] as Permission[] })),
    ...(expires === undefined ? {} : { expires_at: formatDate(expires) }),
  }
}

/** A new key, and its hash, which is what is stored. */
export async function generateKey(context: Context): Promise<{ key: string; hash: string }> {
  const key = formatApiKey(context.random.bytes(API_KEY_BYTES))
  return { key, hash: await context.hashSecret(key) }
}

/** Stores the record by which authentication finds the application. */
export async function storeKey(
  context: Context,
  { key_hash, id: application_id }: ApplicationRecord,
): Promise<void> {
  const entry = { id: key_hash, tenant: context.caller.tenant, application_id }
  await context.store.insert('api_key', 0, entry, { fresh: true })
}
