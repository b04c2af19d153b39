/** Proxies: calls to other servers, in which expressions stand for the data of tokens. */
import { base58 } from '../../domain/base58.js'
import { matchesName } from '../../domain/formula.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { collect, refuseErrors } from '../../domain/property-errors.js'
import {
  checkProxy,
  DIRECTIONS,
  PROXY_KEY_BYTES,
  PROXY_KEY_LENGTH,
  readTransforms,
} from '../../domain/proxy.js'
import { readConfiguration } from '../../domain/reactor.js'
import type { ProxyRecord } from '../../domain/records.js'
import { mergePatch } from '../../domain/token/merge-patch.js'
import type { PropertyErrors } from '../../errors.js'
import { type Context, operation } from '../../framework/operation.js'
import { listOutput, pageInput } from '../../framework/page.js'
import { requireRecord } from '../../framework/require-record.js'
import { readScanned } from '../../framework/scan.js'
import { filterBy, type Infer, inputSchema } from '../../framework/schema.js'
import { nameFilter } from '../formula/formula-attributes.js'
import { findApplicationOf, findBound } from '../reactor/reactor.js'
import { proxyBody, proxyId, proxyOutput, proxyPatch, viewProxy } from './proxy-attributes.js'

const one = inputSchema(['id'], { id: proxyId })

export const createProxy = operation({
  name: 'proxy create',
  summary: 'Create a proxy: a destination, and code that changes what is sent and answered.',
  details:
    'Code exports an asynchronous function that takes { args, configuration, req, logger, svc }, where args is { body,\n' +
    'headers, method, path, query }, or { body, headers } of an answer, and returns { body, headers }; of a request, { res }\n' +
    'is the answer, and nothing is sent. A mask replaces what the groups of its expression match.',
  permissions: ['proxy:create'],
  route: 'POST /proxies',
  success: 201,
  input: inputSchema(['name', 'destination_url'], proxyBody),
  output: proxyOutput,
  examples: ['coffer proxy create --name billing --destination-url https://api.example.com/v1'],
  log: { operation: 'create', message: 'Proxy created' },
  check: checkProxy,
  async run(context, input) {
    const { caller, store } = context
    const key = base58(context.random.bytes(PROXY_KEY_BYTES), PROXY_KEY_LENGTH)
    const record: ProxyRecord = {
      id: context.createUuid(),
      tenant_id: (await context.tenant()).id,
      key,
      ...(await readBody(context, input)),
      created_by: caller.actor.id,
      created_at: context.date,
    }
    const entry = { id: await context.hashSecret(key), tenant: caller.tenant, proxy_id: record.id }
    await store.insert('api_key', 0, entry, { fresh: true })
    await store.insert('proxy', caller.tenant, record, { fresh: true })
    context.reached('proxy', record.id)
    return viewProxy(record)
  },
})

export const listProxies = operation({
  name: 'proxy list',
  summary: 'List proxies, newest first.',
  permissions: ['proxy:read'],
  route: 'GET /proxies',
  input: inputSchema([], {
    id: filterBy('Only the proxy with this id.'),
    name: nameFilter,
    ...pageInput(100),
  }),
  output: listOutput(proxyOutput),
  examples: ['coffer proxy list', `coffer proxy list --name 'pay*'`],
  runDetached(session, { id: ids, name, ...asked }) {
    const matches = (record: ProxyRecord) =>
      (ids === undefined || ids.includes(record.id)) && (name === undefined || matchesName(record.name, name))
    const scan = { kind: 'proxy' as const, tenants: [session.caller.tenant], matches }
    return readScanned(session, scan, asked, { show: (_, record) => viewProxy(record) })
  },
})

export const getProxy = operation({
  name: 'proxy get',
  summary: 'Get a proxy by its id.',
  permissions: ['proxy:read'],
  route: 'GET /proxies/{id}',
  input: one,
  output: proxyOutput,
  examples: ['coffer proxy get payments'],
  log: { operation: 'read', message: 'Proxy retrieved' },
  async run(context, input) {
    const record = await requireRecord(context, 'proxy', input.id)
    context.reached('proxy', record.id)
    return viewProxy(record)
  },
})

export const updateProxy = operation({
  name: 'proxy update',
  summary: 'Replace the attributes of a proxy; its key stays.',
  permissions: ['proxy:update'],
  route: 'PUT /proxies/{id}',
  input: inputSchema(['id', 'name', 'destination_url'], { id: proxyId, ...proxyBody }),
  output: proxyOutput,
  examples: ['coffer proxy update payments --name billing --destination-url https://api.example.com/v2'],
  log: { operation: 'update', message: 'Proxy updated' },
  check: checkProxy,
  run: async (context, input) =>
    viewProxy(await replace(context, await requireRecord(context, 'proxy', input.id), input)),
})

export const patchProxy = operation({
  name: 'proxy patch',
  summary: 'Change a proxy: the configuration is merged, the rest is replaced.',
  details:
    'A merge patch (RFC 7386): attributes in the patch are changed, null removes one, or one entry of the configuration;\n' +
    'all others stay.',
  permissions: ['proxy:update'],
  route: 'PATCH /proxies/{id}',
  contentType: 'application/merge-patch+json',
  input: inputSchema(['id'], { id: proxyId, ...proxyPatch }),
  examples: ['coffer proxy patch payments --configuration KEY=value --quiet'],
  log: { operation: 'update', message: 'Proxy updated' },
  check: checkProxy,
  async run(context, input) {
    const before = await requireRecord(context, 'proxy', input.id)
    const { name, destination_url, configuration, require_auth, disable_detokenization } = before
    const { request_transforms, response_transforms } = before
    // Without one that was deleted meanwhile.
    const bound = await findApplicationOf(context, before)
    const application = bound && { id: bound.id }
    const transforms: Record<string, unknown> = { request_transforms, response_transforms }
    // A patch with the singular form replaces the transforms.
    for (const direction of DIRECTIONS)
      if (`${direction}_transform` in input) delete transforms[`${direction}_transforms`]
    const rest = { name, destination_url, configuration, require_auth, disable_detokenization }
    const patched = mergePatch(omitUndefined({ ...rest, application, ...transforms }), input)
    await replace(context, before, patched as Given)
    return undefined
  },
})

export const deleteProxy = operation({
  name: 'proxy delete',
  summary: 'Delete a proxy; its key ends at once.',
  permissions: ['proxy:delete'],
  route: 'DELETE /proxies/{id}',
  input: one,
  examples: ['coffer proxy delete payments --yes'],
  destroys: 'This deletes the configuration and the key of proxy',
  log: { operation: 'delete', message: 'Proxy deleted' },
  async run(context, input) {
    const { id, key } = await requireRecord(context, 'proxy', input.id)
    await context.store.remove('proxy', context.caller.tenant, id)
    const hash = await context.hashSecret(key)
    // A salvaged vault may lack it.
    if ((await context.store.get('api_key', 0, hash)) !== undefined)
      await context.store.remove('api_key', 0, hash)
    context.reached('proxy', id)
    return undefined
  },
})

type Given = Infer<{
  type: 'object'
  properties: typeof proxyBody
  required: readonly ['name', 'destination_url']
}>

async function replace(context: Context, before: ProxyRecord, given: Given): Promise<ProxyRecord> {
  const { id, tenant_id, key, created_by, created_at } = before
  const record: ProxyRecord = {
    id,
    tenant_id,
    key,
    ...(await readBody(context, given)),
    created_by,
    created_at,
    modified_by: context.caller.actor.id,
    modified_at: context.date,
  }
  await context.store.replace('proxy', context.caller.tenant, record)
  context.reached('proxy', record.id)
  return record
}

/** The attributes of a record. @throws CofferError `validation` for an unsuitable application or configuration */
async function readBody(context: Context, given: Given) {
  checkProxy(given)
  const { name, destination_url, application, require_auth, disable_detokenization } = given
  const errors: PropertyErrors = {}
  const configuration = collect(errors, 'configuration', () => readConfiguration(given.configuration ?? {}))
  const bound = await findBound(context, application ?? undefined, errors)
  refuseErrors(errors)
  return {
    name,
    destination_url,
    ...omitUndefined({ application_id: bound?.id }),
    configuration: configuration ?? {},
    require_auth: require_auth ?? true,
    disable_detokenization: disable_detokenization ?? false,
    request_transforms: readTransforms(given, 'request'),
    response_transforms: readTransforms(given, 'response'),
  }
}
