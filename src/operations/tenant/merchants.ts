/** The merchants of a tenant: the businesses for which a platform stores cards. */
import { mergePatch } from '../../domain/json/json.js'
import type { MerchantRecord } from '../../domain/records/merchant-record.js'
import { CofferError, conflict } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { change, list, query } from '../../framework/operation.js'
import { audit, component, text, uuid } from '../../framework/output.js'
import { pageInput } from '../../framework/page.js'
import { idOf, inputSchema, nameOf } from '../../framework/schema.js'
import { findNewest } from '../../storage/store.js'
import { manage } from '../manage.js'
import { detailsInput, detailsOutput, detailsPatch, readDetails } from './merchant-details.js'

/** In a path, this word stands for the id of the caller's tenant. */
const SELF = 'self'

const merchantOutput = component('Merchant', ['id', 'name', 'created_at'], {
  id: uuid,
  tenant_id: uuid,
  name: text,
  'details?': detailsOutput,
  ...audit,
})

const id = idOf('tenant merchant', 'The id of the merchant, or its name.')
const tenant_id = {
  type: 'string',
  default: SELF,
  description: `The id of your tenant, or ${SELF}.`,
} as const
const name = nameOf('The name of the merchant. It is unique in the tenant.')

const merchants = manage({
  name: 'tenant merchant',
  kind: 'merchant',
  path: '/tenants/{tenant_id}/merchants',
  permission: 'tenant:merchant',
  id,
  output: merchantOutput,
  view: (_, record) => record,
})
const byId = inputSchema(['id'], { tenant_id, id })

const createMerchant = change({
  ...merchants.createDeclaration,
  summary: 'Create a merchant of your tenant.',
  input: inputSchema(['name'], { tenant_id, name, details: detailsInput }),
  examples: [
    `coffer tenant merchant create --name shop --details '{"merchant":{"full_legal_name":"Shop Ltd"}}'`,
  ],
  async run(context, { tenant_id, name, details }) {
    await requireOwnTenant(context, tenant_id)
    await requireFreeName(context, name)
    return merchants.add(context, { name, details: details && readDetails(details) })
  },
})

const listMerchants = list({
  ...merchants.listDeclaration,
  summary: 'List the merchants of your tenant, newest first.',
  input: inputSchema([], { tenant_id, ...pageInput(100) }),
  examples: ['coffer tenant merchant list'],
  async run(session, { tenant_id, ...asked }) {
    await session.inUnit((context) => requireOwnTenant(context, tenant_id))
    return merchants.list(session, asked)
  },
})

const CREATED = '"$(coffer tenant merchant create --name shop -o id)"'
const plainGet = merchants.get(`coffer tenant merchant get ${CREATED}`)
const getMerchant = query({
  ...plainGet,
  input: byId,
  async run(context, { tenant_id, id }) {
    await requireOwnTenant(context, tenant_id)
    return plainGet.run(context, { id }, undefined)
  },
})

const patchMerchant = change({
  ...merchants.patchDeclaration,
  http: { body: { types: ['application/json', 'application/merge-patch+json'] } },
  summary: 'Change the name or details of a merchant.',
  details:
    'The body is a merge patch (RFC 7396). Only the attributes in the patch are changed. Null removes a detail.',
  input: inputSchema(['id'], {
    tenant_id,
    id,
    name: { ...name, nullable: false },
    details: detailsPatch,
  }),
  output: merchantOutput,
  examples: [`coffer tenant merchant patch ${CREATED} --name store`],
  async run(context, { tenant_id, id, name, details }) {
    await requireOwnTenant(context, tenant_id)
    const before = await merchants.require(context, id)
    if (name !== undefined) await requireFreeName(context, name, before)
    return merchants.change(context, before, {
      ...(name !== undefined && { name }),
      ...(details !== undefined && { details: patchDetails(before, details) }),
    })
  },
})

/** `patch`: null removes all details. */
function patchDetails({ details }: MerchantRecord, patch: unknown): MerchantRecord['details'] {
  const patched = mergePatch(details, patch)
  return patched === null ? undefined : readDetails(patched)
}

const plainDelete = merchants.delete({
  summary: 'Delete a merchant of your tenant, and print the deleted merchant.',
  examples: [`coffer tenant merchant delete ${CREATED} --yes`],
  confirmation: 'This deletes the details of merchant',
})
/** Clients of the service expect the deleted merchant in the answer. */
const deleteMerchant = change({
  ...plainDelete,
  input: byId,
  output: merchantOutput,
  async run(context, { tenant_id, id }) {
    await requireOwnTenant(context, tenant_id)
    const record = await merchants.require(context, id)
    await merchants.remove(context, record)
    return record
  },
})

/** @throws CofferError `not_found` for any tenant but the caller's own */
async function requireOwnTenant(context: Context, id: string | undefined): Promise<void> {
  if (id === undefined || id === SELF || id === (await context.tenant()).id) return
  throw new CofferError('not_found', 'There is no tenant with this id.')
}

/** `own`: the merchant that is changed, which may already have this name. @throws CofferError `conflict` */
async function requireFreeName(
  { store, caller }: Context,
  name: string,
  own?: MerchantRecord,
): Promise<void> {
  const other = await findNewest(store, 'merchant', caller.tenant, { field: 'name', value: name })
  if (other !== undefined && other.id !== own?.id)
    throw conflict('There is already a merchant with this name.')
}

export const merchantOperations = [
  createMerchant,
  listMerchants,
  getMerchant,
  patchMerchant,
  deleteMerchant,
] as const
