import { omitUndefined } from '../../domain/omit-undefined.js'
import { about } from '../../domain/property-errors.js'
import type { TenantRecord } from '../../domain/records/records.js'
import { TOKEN_TYPE_NAMES } from '../../domain/token/token-types.js'
import { requires, wholeVault } from '../../framework/declaration.js'
import { change, query } from '../../framework/operation.js'
import * as output from '../../framework/output.js'
import { closedInput, displayName, type Infer, inputSchema } from '../../framework/schema.js'
import { readAll } from '../../storage/store.js'
import { removePlaces } from '../3ds/place.js'
import { revokeKeys } from '../application/application-record.js'
import { modified } from '../manage.js'
import { removePeople } from '../member/noun.js'
import { countActive, measureType } from '../token/lifetime.js'
import { merchantOperations } from './merchants.js'
import { ownerOperations } from './owner.js'
import { contactOperations } from './security-contact.js'
import { checkTenantName, createTenant, findTenant } from './tenant-create.js'

const { boolean, count, date, enumOf, object, text, uuid } = output

const flag = { type: 'string', enum: ['true', 'false'] } as const

const tenantAttributes = {
  id: uuid,
  owner_id: uuid,
  name: text,
  type: { ...enumOf('test'), description: 'Always test. The hosted service also has production.' },
  settings: object({ 'deduplicate_tokens?': flag, 'disable_ephemeral_proxy?': flag }),
  ...output.optionalAudit,
} as const
const columns = ['id', 'name', 'owner_id', 'settings', 'created_at']
const tenantOutput = output.component('Tenant', columns, tenantAttributes)

export type TenantView = Infer<typeof tenantOutput>

const getTenant = query({
  name: 'tenant get',
  summary: 'Get your tenant.',
  access: requires('tenant:read'),
  route: 'GET /tenants/self',
  output: tenantOutput,
  examples: ['coffer tenant get'],
  log: { operation: 'read', message: 'Tenant retrieved' },
  async run(context) {
    const tenant = await context.tenant()
    context.audit.record('tenant', tenant.id)
    return viewTenant(tenant)
  },
})

export const updateTenant = change({
  name: 'tenant update',
  summary: 'Rename your tenant or change its settings.',
  access: requires('tenant:update'),
  route: 'PUT /tenants/self',
  input: inputSchema(['name'], {
    name: { ...displayName, description: 'The name of the tenant.' },
    settings: {
      type: 'object',
      properties: { deduplicate_tokens: flag, disable_ephemeral_proxy: flag },
      additionalProperties: false,
      description:
        'Each setting is "true" or "false". deduplicate_tokens: if equal data is stored again, the existing token is returned. disable_ephemeral_proxy: a call must name a proxy, not a URL. Without settings, the tenant keeps its settings.',
    },
  }),
  output: tenantOutput,
  examples: [`coffer tenant update --name staging --settings '{"deduplicate_tokens":"true"}'`],
  log: { operation: 'update', message: 'Tenant updated' },
  check: ({ name }) => {
    if (name !== undefined) about('name', () => checkTenantName(name))
  },
  async run(context, { name, settings }) {
    const before = await context.tenant()
    const record = { ...before, name, settings: settings ?? before.settings, ...modified(context) }
    await context.store.replace('tenant', 0, record)
    context.audit.record('tenant', record.id)
    context.audit.emit({ type: 'tenant.updated', about: record })
    return viewTenant(record)
  },
})

const deleteTenant = change({
  name: 'tenant delete',
  summary: 'Delete your tenant with all its data, and destroy its keys.',
  details:
    'Earlier backups contain their own keys, so the data of the tenant in these backups remains readable.',
  access: requires('tenant:delete'),
  route: 'DELETE /tenants/self',
  cli: { confirmation: 'This deletes the tenant with all of its tokens, applications and logs' },
  examples: ['coffer tenant delete --yes'],
  async run({ store, caller: { tenant } }) {
    // `removeTenant` does not remove the records of API keys, because they belong to the vault.
    const applications = await readAll(store, 'application', tenant)
    await Promise.all(applications.map(({ keys }) => revokeKeys(store, keys)))
    await removePeople(store, tenant)
    await removePlaces(store, tenant)
    await store.removeTenant(tenant)
    return undefined
  },
})

const reportUsage = query({
  name: 'tenant usage',
  summary: 'Report the number of tokens, and how many tokens were active this month.',
  access: requires('report:read'),
  route: 'GET /tenants/self/reports/usage',
  http: { olderPath: '/tenants/self/reports/operations' },
  output: output.component('UsageReport', [], {
    token_report: object({
      metrics_by_type: { type: 'object', additionalProperties: object({ count, 'last_created_at?': date }) },
      included_monthly_active_tokens: count,
      monthly_active_tokens: count,
    }),
    total_tokens: count,
  }),
  examples: ['coffer tenant usage'],
  async run(context) {
    const metrics_by_type: Record<string, { count: number; last_created_at: string }> = {}
    for (const type of TOKEN_TYPE_NAMES) {
      const metrics = await measureType(context, type)
      if (metrics !== undefined) metrics_by_type[type] = metrics
    }
    return {
      token_report: {
        metrics_by_type,
        included_monthly_active_tokens: await context.setting('tokens.included_monthly_active'),
        monthly_active_tokens: await countActive(context),
      },
      total_tokens: Object.values(metrics_by_type).reduce((sum, { count }) => sum + count, 0),
    }
  },
})

function viewTenant(tenant: TenantRecord): TenantView {
  const { id, owner_id, name, settings, created_by, created_at, modified_by, modified_at } = tenant
  const made = omitUndefined({ created_by, created_at, modified_by, modified_at })
  return { id, owner_id, name, settings, ...made, type: 'test' }
}

const addTenant = change({
  access: wholeVault,
  name: 'tenant create',
  summary: 'Create another tenant in the vault.',
  input: closedInput(['name'], { name: { type: 'string', description: 'The name of the tenant.' } }),
  output: tenantOutput,
  cli: { positionals: ['name'] },
  examples: ['coffer tenant create staging'],
  log: { operation: 'update', message: 'Another tenant created' },
  check: ({ name }) => about('name', () => checkTenantName(String(name))),
  run: async ({ store, createUuid, vault }, { name }) =>
    viewTenant(await createTenant(store, { name, keys: vault().generateTenantKeys(), createUuid })),
})

const listTenants = query({
  access: wholeVault,
  name: 'tenant list',
  summary: 'List the tenants of the vault, newest first.',
  output: output.arrayOf(object({ ...tenantAttributes, 'is_used?': boolean })),
  cli: { columns: ['name', 'id', 'is_used', 'created_at'] },
  examples: ['coffer tenant list'],
  run: async ({ store }) => (await readAll(store, 'tenant', 0)).map(viewTenant),
})

const useTenant = change({
  access: wholeVault,
  name: 'tenant use',
  summary: 'Choose the tenant that commands act in by default.',
  details:
    'The choice is stored in your own configuration, for this vault. --tenant and COFFER_TENANT override it.',
  input: closedInput(['name'], { name: { type: 'string', description: 'The name or id of the tenant.' } }),
  output: object({ id: uuid, name: text, is_used: boolean }),
  cli: { positionals: ['name'] },
  examples: ['coffer tenant use demo'],
  run: async ({ store }, { name: nameOrId }) => {
    const { id, name } = await findTenant(store, nameOrId)
    return { id, name, is_used: true }
  },
})

export const noun = {
  name: 'tenant',
  summary: 'Manage tenants and report usage',
  groups: { merchant: 'Create, list, change and delete the merchants of your tenant.' },
  operations: [
    getTenant,
    updateTenant,
    deleteTenant,
    reportUsage,
    ...ownerOperations,
    ...contactOperations,
    ...merchantOperations,
    addTenant,
    listTenants,
    useTenant,
  ],
}
