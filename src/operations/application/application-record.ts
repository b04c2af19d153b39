import { CONDITION_ATTRIBUTES, CONDITION_OPERATORS } from '../../domain/access/access.js'
import { API_KEY, APPLICATION_TYPES, checkGrants, isExpired } from '../../domain/access/application.js'
import { PERMISSIONS, type Permission, TRANSFORMS } from '../../domain/access/permissions.js'
import { parseExpiry } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { collectLater, refuseErrors } from '../../domain/property-errors.js'
import type { ApplicationKey, ApplicationRecord } from '../../domain/records/records.js'
import { randomKey } from '../../domain/text/base58.js'
import type { Context } from '../../framework/context.js'
import type { CheckTools } from '../../framework/declaration.js'
import { arrayOf, audit, component, date, text, texts, uuid } from '../../framework/output.js'
import type { Infer } from '../../framework/schema.js'
import type { StoreWriter } from '../../storage/store.js'

const MAX_RULES = 100
const MAX_CONDITIONS = 20

const shownOnce = {
  ...text,
  isShownOnce: true,
  description: 'Shown only when created or regenerated.',
} as const

export const keyOutput = component('ApplicationKey', ['id', 'created_by', 'created_at', 'expires_at'], {
  id: uuid,
  'key?': shownOnce,
  created_by: uuid,
  created_at: date,
  'expires_at?': { ...date, description: 'When the key stops working, after it was replaced by a new one.' },
})

const meanings: Record<string, string> = {}
for (const [name, { description, application_types }] of Object.entries(PERMISSIONS))
  meanings[name] = `${description} (${application_types.join(', ')})`

export const permissionList = {
  type: 'array',
  items: { type: 'string', cli: { meanings } },
  maxItems: 100,
  flag: 'permission',
} as const

const ruleProperties = {
  description: { type: 'string', maxLength: 200 },
  priority: { type: 'integer', minimum: 1, maximum: 1_000_000 },
  container: { type: 'string', description: 'Applies to this container and all below it.' },
  conditions: {
    type: 'array',
    maxItems: MAX_CONDITIONS,
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
  permissions: { type: 'array', items: permissionList.items, maxItems: permissionList.maxItems },
} as const
type RuleProperty = keyof typeof ruleProperties

/** Only rules of sessions may have conditions. `checkRights` refuses conditions in rules of applications. */
export function ruleList<
  const N extends { required: readonly RuleProperty[]; needsOneOf?: readonly RuleProperty[] },
>(description: string, needed: N) {
  // An unknown property is refused, because the rule could grant too much without this property.
  const items = {
    type: 'object',
    shortForm: 'rule',
    properties: ruleProperties,
    ...needed,
    additionalProperties: false,
  } as const
  return { type: 'array', maxItems: MAX_RULES, flag: 'rule', description, items } as const
}

export const ruleOutput = {
  ...component('Rule', [], {
    'description?': text,
    priority: { type: 'integer', minimum: 1 },
    container: text,
    transform: { enum: TRANSFORMS },
    permissions: texts,
  }),
  shortForm: 'rule',
} as const

export const applicationOutput = component(
  'Application',
  ['id', 'name', 'type', 'permissions', 'rules', 'created_at', 'expires_at'],
  {
    id: uuid,
    tenant_id: uuid,
    name: text,
    'key?': shownOnce,
    keys: arrayOf(keyOutput),
    type: { enum: APPLICATION_TYPES },
    'permissions?': texts,
    'rules?': arrayOf(ruleOutput),
    'expires_at?': date,
    ...audit,
  },
)

export type ApplicationView = Infer<typeof applicationOutput>

/** `now`: ms since the epoch. `key`: the plaintext of the newest key, if the key was just created. */
export function viewApplication(record: ApplicationRecord, now: number, key?: string): ApplicationView {
  const keys = liveKeys(record, now).map((each, at) => viewKey(each, at === 0 ? key : undefined))
  return { ...record, keys, ...omitUndefined({ key }) }
}

export function viewKey({ hash: _, ...view }: ApplicationKey, key?: string): Infer<typeof keyOutput> {
  return { ...view, ...omitUndefined({ key }) }
}

/**
 * Returns the expiry in ms since the epoch. If `holder` is undefined, every known permission is valid.
 * @throws CofferError `validation`
 */
export async function checkRights(
  holder: Parameters<typeof checkGrants>[0],
  input: Parameters<typeof checkGrants>[1] & { readonly expires_at?: string | undefined },
  tools: CheckTools,
  parse: (text: string, now: number) => number = parseExpiry,
): Promise<number | undefined> {
  const errors = checkGrants(holder, input)
  const { expires_at: text } = input
  const read = async () => (text === undefined ? undefined : parse(text, await tools.now()))
  const expires = await collectLater(errors, 'expires_at', read)
  refuseErrors(errors)
  return expires
}

export function readRights<R extends { permissions: string[] }>(rights: {
  permissions?: string[]
  rules?: R[]
}) {
  const unique = (permissions: string[] = []) => [...new Set(permissions)] as Permission[]
  return {
    permissions: unique(rights.permissions),
    rules: (rights.rules ?? []).map((rule) => ({ ...rule, permissions: unique(rule.permissions) })),
  }
}

/** An expired key stays in the record until the sweep purges the key. */
export function liveKeys({ keys }: Pick<ApplicationRecord, 'keys'>, now: number): ApplicationKey[] {
  return keys.filter((key) => !isExpired(key, now))
}

/** Without `chosen`, the key is random. Also stores the record by which authentication finds the key. */
export async function issueKey(context: Context, application_id: string, chosen?: string) {
  const key = chosen ?? randomKey(context.random, API_KEY)
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

/** In a vault that was copied with --skip-damaged, the record by which authentication finds the key may be missing. */
export async function expireApiKey(store: StoreWriter, { hash, expires_at }: Required<ApplicationKey>) {
  const record = await store.get('api_key', 0, hash)
  if (record !== undefined) await store.replace('api_key', 0, record, { expires: Date.parse(expires_at) })
}

/** In a vault that was copied with --skip-damaged, the record may be missing. */
export async function removeApiKey(store: StoreWriter, hash: string): Promise<void> {
  if ((await store.get('api_key', 0, hash)) !== undefined) await store.remove('api_key', 0, hash)
}
