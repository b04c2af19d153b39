/** Operations on all tenants of a vault, for its owner. Applications cannot see other tenants. */

import { checkTenantName } from '../../domain/invitation/tenant-name.js'
import { about } from '../../domain/property-errors.js'
import { onVault, operation } from '../../framework/operation.js'
import { arrayOf, boolean, object, text, uuid } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { readAll } from '../../storage/pages.js'
import { tenantAttributes, tenantOutput, viewTenant } from './tenant.js'
import { createTenant as createRecords, findTenant } from './tenant-create.js'

export const createTenant = operation({
  ...onVault,
  name: 'tenant create',
  summary: 'Create another tenant in the vault.',
  input: closedInput(['name'], { name: { type: 'string', description: 'The name of the tenant.' } }),
  positionals: ['name'],
  output: tenantOutput,
  columns: ['name', 'id', 'created_at'],
  examples: ['coffer tenant create staging'],
  log: { operation: 'update', message: 'Another tenant created' },
  check: ({ name }) => about('name', () => checkTenantName(String(name))),
  run: async ({ store, createUuid, vault }, { name }) =>
    viewTenant(await createRecords(store, { name, keys: vault().generateTenantKeys(), createUuid })),
})

export const listTenants = operation({
  ...onVault,
  name: 'tenant list',
  summary: 'List the tenants of the vault, newest first.',
  output: arrayOf(object({ ...tenantAttributes, 'is_used?': boolean })),
  columns: ['name', 'id', 'is_used', 'created_at'],
  examples: ['coffer tenant list'],
  run: async ({ store }) => (await readAll(store, 'tenant', 0)).map(viewTenant),
})

export const useTenant = operation({
  ...onVault,
  name: 'tenant use',
  summary: 'Set the default tenant of commands.',
  details:
    'The default is stored for this vault in your own configuration. --tenant and COFFER_TENANT override it.',
  input: closedInput(['name'], { name: { type: 'string', description: 'Its name or id.' } }),
  positionals: ['name'],
  output: object({ id: uuid, name: text, is_used: boolean }),
  columns: ['name', 'id', 'is_used'],
  examples: ['coffer tenant use demo'],
  run: async ({ store }, { name: nameOrId }) => {
    const { id, name } = await findTenant(store, nameOrId)
    return { id, name, is_used: true }
  },
})
