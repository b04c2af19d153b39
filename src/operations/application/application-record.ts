/** The record of an application: its view, its grants and its API keys. */
import { CONDITION_ATTRIBUTES, CONDITION_OPERATORS } from '../../domain/access/access.js'
import {
  API_KEY,
  APPLICATION_TYPES,
  checkGrants,
  type RequestedGrants,
} from '../../domain/access/application.js'
import {
  type ApplicationType,
  PERMISSIONS,
  type Permission,
  TRANSFORMS,
} from '../../domain/access/permissions.js'
import { MOST_CONDITIONS } from '../../domain/access/session.js'
import { formatDate, parseExpiry } from '../../domain/dates.js'
import { type Lenient, omitUndefined } from '../../domain/omit-undefined.js'
import { collectLater, refuseErrors } from '../../domain/property-errors.js'
import type { ApplicationKey, ApplicationRecord } from '../../domain/records/records.js'
import { drawKey } from '../../domain/text/base58.js'
import type { CheckTools, Context } from '../../framework/operation.js'
import { arrayOf, audit, component, date, text, texts, uuid } from '../../framework/output.js'
import type { Infer } from '../../framework/schema.js'
import type { StoreWriter } from '../../storage/store.js'
import { modified } from '../manage.js'

const shownOnce = {
  ...text,
  isShownOnce: true,
  description: 'Shown only when it is created or regenerated.',
} as const

export const keyOutput = component('ApplicationKey', ['id', 'created_by', 'created_at'], {
  id: uuid,
  'key?': shownOnce,
  created_by: uuid,
  created_at: date,
})

const MOST_PERMISSIONS = 50
const meanings = Object.fromEntries(
  Object.entries(PERMISSIONS).map(([name, { description, application_types: types }]) => [
    name,
    `${description} (${types.join(', ')})`,
  ]),
)
export const permissionList = {
  type: 'array',
  items: { type: 'string', meanings },
  maxItems: MOST_PERMISSIONS,
} as const

/** The properties of an access rule; only rules of sessions have conditions. */
export const ruleProperties = {
  description: { type: 'string', maxLength: 200 },
  priority: { type: 'integer', minimum: 1, maximum: 1_000_000 },
  container: { type: 'string', description: 'Applies to this container and all below it.' },
  conditions: {
    type: 'array',
    maxItems: MOST_CONDITIONS,
    items: {
      type: 'object',
      properties: {
        attribute: { type: 'string', enum: CONDITION_ATTRIBUTES },
        operator: { type: 'string', enum: CONDITION_OPERATORS },
        value: { type: 'string', maxLength: 1000 },
      },
      required: ['attribute', 'operator', 'value'],
      additionalProperties: false,
    },
  },
  transform: { type: 'string', enum: TRANSFORMS },
  permissions: permissionList,
} as const

export const applicationOutput = component(
  'Application',
  ['id', 'name', 'type', 'permissions', 'created_at'],
  {
    id: uuid,
    tenant_id: uuid,
    name: text,
    'key?': shownOnce,
    keys: arrayOf(keyOutput),
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

interface ApplicationInput extends RequestedGrants {
  name: string
  expires_at?: string
}

/** `key`: the newest key, if it was just created. */
export function viewApplication(record: ApplicationRecord, key?: string): ApplicationView {
  const { keys: _, ...view } = record
  const [newest, ...others] = record.keys
  const keys = newest === undefined ? [] : [viewKey(newest, key), ...others.map((each) => viewKey(each))]
  return { ...view, keys, ...omitUndefined({ key }) }
}

export function viewKey({ hash: _, ...view }: ApplicationKey, key?: string): Infer<typeof keyOutput> {
  return { ...view, ...omitUndefined({ key }) }
}

/** `type` is absent in an update. @returns when keys expire, ms since the epoch. @throws CofferError `validation` */
export async function checkApplication(
  type: ApplicationType | undefined,
  input: Lenient<ApplicationInput>,
  tools: CheckTools,
): Promise<number | undefined> {
  const errors = checkGrants(type, input)
  const { expires_at: text } = input
  const expires =
    text === undefined
      ? undefined
      : await collectLater(errors, 'expires_at', async () => parseExpiry(text, await tools.now()))
  refuseErrors(errors)
  return expires
}

/** The grants as stored, without duplicate permissions; `expires` is the result of {@link checkApplication}. */
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

/** Creates a key of the application, `chosen` or random, with the record by which authentication finds it. */
export async function issueKey(context: Context, application_id: string, chosen?: string) {
  const key = chosen ?? drawKey(context.random, API_KEY)
  const hash = await context.hashSecret(key)
  const { tenant, actor } = context.caller
  const fresh = chosen === undefined
  await context.store.insert('api_key', 0, { id: hash, tenant, application_id }, { fresh })
  const entry = { id: context.createUuid(), hash, created_by: actor.id, created_at: context.date }
  return { key, entry }
}

export async function revokeKeys(store: StoreWriter, keys: readonly ApplicationKey[]): Promise<void> {
  for (const { hash } of keys) await removeApiKey(store, hash)
}

/** Removes the record by which a key is found. A vault copied with --skip-damaged may lack it. */
export async function removeApiKey(store: StoreWriter, hash: string): Promise<void> {
  if ((await store.get('api_key', 0, hash)) !== undefined) await store.remove('api_key', 0, hash)
}

export async function replaceKeys(
  context: Context,
  before: ApplicationRecord,
  keys: readonly ApplicationKey[],
): Promise<ApplicationRecord> {
  const record = { ...before, keys: [...keys], ...modified(context) }
  await context.store.replace('application', context.caller.tenant, record)
  context.audit.record('application', record.id)
  return record
}
