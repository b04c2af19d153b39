/** The caller's tenant: read, update, delete, usage report. */

import { checkTenantName, MAX_TENANT_NAME_LENGTH } from '../../domain/invitation/tenant-name.js'
import { about } from '../../domain/property-errors.js'
import type { TenantRecord } from '../../domain/records/records.js'
import { TOKEN_TYPE_NAMES } from '../../domain/token/token-types.js'
import { operation } from '../../framework/operation.js'
import { component, count, date, enumOf, object, optionalAudit, text, uuid } from '../../framework/output.js'
import { type Infer, inputSchema } from '../../framework/schema.js'
import { eachRecord } from '../../storage/pages.js'
import { revokeKeys } from '../application/application-record.js'
import { modified } from '../manage.js'
import { removePeople } from '../member/member.js'
import { countActive, measureType } from '../token/token-activity.js'

export const tenantAttributes = {
  id: uuid,
  owner_id: uuid,
  name: text,
  settings: object({
    'deduplicate_tokens?': enumOf('true', 'false'),
    'disable_ephemeral_proxy?': enumOf('true', 'false'),
  }),
  ...optionalAudit,
} as const
export const tenantOutput = component(
  'Tenant',
  ['id', 'name', 'owner_id', 'settings', 'created_at'],
  tenantAttributes,
)

export type TenantView = Infer<typeof tenantOutput>

const usageOutput = component('UsageReport', [], {
  token_report: object({
    metrics_by_type: { type: 'object', additionalProperties: object({ count, 'last_created_at?': date }) },
    included_monthly_active_tokens: count,
    monthly_active_tokens: count,
  }),
})

export const getTenant = operation({
  name: 'tenant get',
  summary: 'Get your tenant.',
  permissions: ['tenant:read'],
  route: 'GET /tenants/self',
  input: inputSchema([], {}),
  output: tenantOutput,
  examples: ['coffer tenant get'],
  log: { operation: 'read', message: 'Tenant retrieved' },
  async run(context) {
    const tenant = await context.tenant()
    context.audit.record('tenant', tenant.id)
    return viewTenant(tenant)
  },
})

export const updateTenant = operation({
  name: 'tenant update',
  summary: 'Rename your tenant or change its settings.',
  permissions: ['tenant:update'],
  route: 'PUT /tenants/self',
  input: inputSchema(['name'], {
    name: { type: 'string', minLength: 1, maxLength: MAX_TENANT_NAME_LENGTH, description: 'A display name.' },
    settings: {
      type: 'object',
      properties: {
        deduplicate_tokens: { type: 'string', enum: ['true', 'false'] },
        disable_ephemeral_proxy: { type: 'string', enum: ['true', 'false'] },
      },
      additionalProperties: false,
      description:
        'deduplicate_tokens and disable_ephemeral_proxy: "true" or "false" each; if omitted, the settings are not changed.',
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
    const record: TenantRecord = {
      ...before,
      name,
      settings: settings ?? before.settings,
      ...modified(context),
    }
    await context.store.replace('tenant', 0, record)
    context.audit.record('tenant', record.id)
    return viewTenant(record)
  },
})

export const deleteTenant = operation({
  name: 'tenant delete',
  summary: 'Delete your tenant with all its data, and destroy its keys.',
  details: 'Earlier backups contain their own keys, so their data of this tenant remains readable.',
  permissions: ['tenant:delete'],
  route: 'DELETE /tenants/self',
  input: inputSchema([], {}),
  examples: ['coffer tenant delete --yes'],
  destroys: 'This deletes the tenant with all of its tokens, applications and logs',
  async run(context) {
    const { store, caller } = context
    // API key records belong to the vault, so deleting the rows of the tenant does not remove them.
    for await (const application of eachRecord(store, 'application', caller.tenant))
      await revokeKeys(store, application.keys)
    await removePeople(store, caller.tenant)
    await store.removeTenant(caller.tenant)
    return undefined
  },
})

export const reportUsage = operation({
  name: 'tenant usage',
  summary: 'Report the number of tokens, and of those active this month.',
  permissions: ['report:read'],
  route: 'GET /tenants/self/reports/usage',
  input: inputSchema([], {}),
  output: usageOutput,
  examples: ['coffer tenant usage'],
  async run(context) {
    const metrics_by_type: Record<string, { count: number; last_created_at?: string }> = {}
    for (const type of TOKEN_TYPE_NAMES) {
      const metrics = await measureType(context, type)
      if (metrics !== undefined) metrics_by_type[type] = metrics
    }
    const settings = await context.store.get('settings', 0, 'vault')
    const included = settings?.values['tokens.included_monthly_active']
    return {
      token_report: {
        metrics_by_type,
        included_monthly_active_tokens: typeof included === 'number' ? included : 0,
        monthly_active_tokens: await countActive(context),
      },
    }
  },
})

export function viewTenant(tenant: TenantRecord): TenantView {
  const { number: _number, keys: _keys, log_chains: _chains, ...view } = tenant
  return view
}
