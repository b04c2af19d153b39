import { createTenant, listTenants, useTenant } from './owner-tenants.js'
import * as tenant from './tenant.js'

export const noun = {
  name: 'tenant',
  summary: 'Manage tenants and report usage',
  operations: [
    tenant.getTenant,
    tenant.updateTenant,
    tenant.deleteTenant,
    tenant.reportUsage,
    createTenant,
    listTenants,
    useTenant,
  ],
}
