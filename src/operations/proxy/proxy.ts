/** Proxies: calls to other servers, in which expressions stand for the data of tokens. */

import { omitUndefined } from '../../domain/omit-undefined.js'
import { collect, refuseErrors } from '../../domain/property-errors.js'
import { checkProxy, DIRECTIONS, readTransforms } from '../../domain/proxy/proxy.js'
import { readConfiguration } from '../../domain/reactor/reactor.js'
import type { ProxyRecord } from '../../domain/records/records.js'
import { drawKey } from '../../domain/text/base58.js'
import { mergePatch } from '../../domain/token/merge-patch.js'
import type { PropertyErrors } from '../../errors.js'
import { type Context, operation } from '../../framework/operation.js'
import { pageInput } from '../../framework/page.js'
import { filterBy, type Infer, inputSchema } from '../../framework/schema.js'
import { removeApiKey } from '../application/application-record.js'
import { nameFilter } from '../formula/formula-attributes.js'
import { created, manage, modified } from '../manage.js'
import { findApplicationOf, findBound } from '../reactor/reactor.js'
import { proxyBody, proxyId, proxyOutput, proxyPatch, viewProxy } from './proxy-attributes.js'

const proxies = manage({
  name: 'proxy',
  called: 'a proxy',
  title: 'Proxy',
  kind: 'proxy',
  path: '/proxies',
  permission: 'proxy',
  id: proxyId,
  output: proxyOutput,
  // An application that was deleted meanwhile is left out.
  view: async (context, record) => {
    const { application_id: _, ...rest } = record
    const bound = await findApplicationOf(context, record)
    return viewProxy({ ...rest, ...omitUndefined({ application_id: bound?.id }) })
  },
})

export const createProxy = operation({
  ...proxies.creating,
  summary: 'Create a proxy: a destination, and code that changes what is sent and answered.',
  details:
    'Code exports an asynchronous function that takes { args, configuration, req, logger, svc }, where args is { body,\n' +
    'headers, method, path, query }, or { body, headers } of an answer, and returns { body, headers }; of a request, { res }\n' +
    'is the answer, and nothing is sent. A mask replaces what the groups of its expression match.',
  input: inputSchema(['name', 'destination_url'], proxyBody),
  examples: ['coffer proxy create --name billing --destination-url https://api.example.com/v1'],
  check: checkProxy,
  async run(context, input) {
    const key = drawKey(context.random)
    const id = context.createUuid()
    const tenant_id = (await context.tenant()).id
    const record = { id, tenant_id, key, ...(await readBody(context, input)), ...created(context) }
    const entry = { id: await context.hashSecret(key), tenant: context.caller.tenant, proxy_id: id }
    await context.store.insert('api_key', 0, entry, { fresh: true })
    return viewProxy(await proxies.add(context, record))
  },
})

export const listProxies = operation({
  ...proxies.listing,
  summary: 'List proxies, newest first.',
  input: inputSchema([], {
    id: filterBy('Only the proxy with this id.'),
    name: nameFilter,
    ...pageInput(100),
  }),
  examples: ['coffer proxy list', `coffer proxy list --name 'pay*'`],
  runDetached: proxies.list,
})

export const getProxy = proxies.get('coffer proxy get payments')

export const updateProxy = operation({
  ...proxies.updating,
  summary: 'Replace the attributes of a proxy; its key stays.',
  input: inputSchema(['id', 'name', 'destination_url'], { id: proxyId, ...proxyBody }),
  examples: ['coffer proxy update payments --name billing --destination-url https://api.example.com/v2'],
  check: checkProxy,
  run: async (context, input) =>
    viewProxy(await replace(context, await proxies.require(context, input.id), input)),
})

export const patchProxy = operation({
  ...proxies.patching,
  summary: 'Change a proxy: the configuration is merged, the rest is replaced.',
  details:
    'A merge patch (RFC 7386): attributes in the patch are changed, null removes one, or one entry of the configuration;\n' +
    'all others stay.',
  input: inputSchema(['id'], { id: proxyId, ...proxyPatch }),
  examples: ['coffer proxy patch payments --configuration KEY=value --quiet'],
  check: checkProxy,
  async run(context, input) {
    const before = await proxies.require(context, input.id)
    const { name, destination_url, configuration, require_auth, disable_detokenization } = before
    const { request_transforms, response_transforms } = before
    // An application that was deleted meanwhile is left out.
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

export const deleteProxy = proxies.delete({
  summary: 'Delete a proxy; its key ends at once.',
  examples: ['coffer proxy delete payments --yes'],
  destroys: 'This deletes the configuration and the key of proxy',
  async before(context, { key }) {
    await removeApiKey(context.store, await context.hashSecret(key))
  },
})

type Given = Infer<{
  type: 'object'
  properties: typeof proxyBody
  required: readonly ['name', 'destination_url']
}>

async function replace(context: Context, before: ProxyRecord, given: Given): Promise<ProxyRecord> {
  const { id, tenant_id, key, created_by, created_at } = before
  const body = await readBody(context, given)
  const record = { id, tenant_id, key, ...body, created_by, created_at, ...modified(context) }
  return proxies.replace(context, record)
}

/** @throws CofferError `validation` for an unsuitable application or configuration */
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
