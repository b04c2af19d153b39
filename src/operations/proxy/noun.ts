import { mergePatch } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { addError } from '../../domain/property-errors.js'
import { checkProxy } from '../../domain/proxy/proxy.js'
import { DIRECTIONS, findTemplates, readTransforms } from '../../domain/proxy/transform.js'
import { request, STATES } from '../../domain/reactor/state.js'
import type { ProxyRecord, ProxyVersion } from '../../domain/records/records.js'
import { randomKey } from '../../domain/text/base58.js'
import type { PropertyErrors } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import type { CheckTools } from '../../framework/declaration.js'
import { change, list } from '../../framework/operation.js'
import * as output from '../../framework/output.js'
import { pageInput } from '../../framework/page.js'
import {
  displayName,
  filterBy,
  type Infer,
  idOf,
  inputSchema,
  lenientInput,
  nameFilter,
  patchOf,
} from '../../framework/schema.js'
import { removeApiKey } from '../application/application-record.js'
import { chosenId, manage } from '../manage.js'
import { buildErrorOutput, type FindBuild, prepareBuild, viewState, wholeVersion } from '../reactor/build.js'
import * as reactor from '../reactor/reactor.js'
import { findExpressions } from '../token/detokenize.js'
import { callProxy } from './proxy-call.js'
import { builtCodeOf, runningProxy, VERSIONED } from './proxy-version.js'

const { anyJson, arrayOf, audit, boolean, component, enumOf, object, text, uuid } = output

const transform = object({
  type: text,
  'code?': text,
  'options?': object({
    'runtime?': reactor.runtimeOutput,
    'identifier?': text,
    'token?': anyJson('A token request, in which {{ req }} or {{ res }} stands for the body.'),
    'value?': text,
    'location?': text,
  }),
  'matcher?': text,
  'expression?': text,
  'replacement?': text,
})

const proxyOutput = component('Proxy', ['id', 'name', 'destination_url', 'key', 'created_at'], {
  id: uuid,
  tenant_id: uuid,
  name: text,
  key: { ...text, description: 'A call names its proxy by this key.', inNoReveal: () => 'REDACTED' },
  state: enumOf(...STATES),
  'requested?': object({
    proxy: object({
      configuration: reactor.configurationOutput,
      request_transforms: arrayOf(transform),
      response_transforms: arrayOf(transform),
    }),
    ...buildErrorOutput,
  }),
  destination_url: text,
  'application_id?': uuid,
  configuration: reactor.configurationOutput,
  require_auth: boolean,
  disable_detokenization: boolean,
  request_transforms: arrayOf(transform),
  'request_transform?': transform,
  response_transforms: arrayOf(transform),
  'response_transform?': transform,
  'request_reactor_id?': uuid,
  'response_reactor_id?': uuid,
  ...audit,
})

const proxyId = idOf('proxy', 'The id of the proxy, or its name.')

const proxyBody = {
  name: displayName,
  destination_url: {
    type: 'string',
    description: 'The URL that calls are sent to: https://api.example.com/v1.',
  },
  application: reactor.reference(
    'app',
    'The application that the code of the proxy acts as: its id or name, or {"id":"…"}.',
  ),
  configuration: reactor.configurationOf('A configuration parameter of the code: KEY=value.'),
  require_auth: {
    type: 'boolean',
    description:
      'Whether calls need an API key (default: true). If false, calls without a key act as the application of the proxy.',
  },
  disable_detokenization: { type: 'boolean', description: 'Whether expressions are passed on unchanged.' },
  request_transforms: {
    description:
      'The transforms of requests, in order, as JSON: [{"type":"code","code":"…"}]; also tokenize, append_json, append_header, append_text.',
  },
  request_transform: { description: 'One transform of requests, as JSON.' },
  response_transforms: {
    description:
      'The transforms of answers, in order, as JSON; also masks: [{"type":"mask","matcher":"regex","expression":"(\\\\d{12})","replacement":"*"}].',
  },
  response_transform: { description: 'One transform of answers, as JSON.' },
  request_reactor_id: idOf(
    'reactor',
    'A reactor that changes requests, instead of transforms: its id or name.',
  ),
  response_reactor_id: idOf(
    'reactor',
    'A reactor that changes answers, instead of transforms: its id or name.',
  ),
} as const

const proxyInput = lenientInput(['name', 'destination_url'], proxyBody)

/**
 * In a patch, null removes an attribute. For `require_auth` and `disable_detokenization`, null counts as absent and
 * changes nothing, as in other requests.
 */
const proxyPatch = {
  ...patchOf(proxyBody, ['name', 'destination_url']),
  require_auth: proxyBody.require_auth,
  disable_detokenization: proxyBody.disable_detokenization,
}

const proxies = manage({
  name: 'proxy',
  kind: 'proxy',
  path: '/proxies',
  permission: 'proxy',
  id: proxyId,
  output: proxyOutput,
  view: viewProxy,
})

export const createProxy = change({
  ...proxies.createDeclaration,
  plaintext: 'refused',
  summary: 'Create a proxy: a destination, and code that changes requests and answers.',
  details:
    'Code exports an asynchronous function that takes { args, configuration, req, logger, svc } and returns { body, headers }.\n' +
    'args is { body, headers, method, path, query } of a request, or { body, headers } of an answer. If code for requests\n' +
    'returns { res }, the call gets this answer, and no request is sent. A mask puts its replacement in place of each\n' +
    'character that the groups of its expression match. tokenize creates a token. append_json, append_header and append_text\n' +
    'add a value to the message. In the options of tokenize and append_*, {{ req }} or {{ res }} is the body, and\n' +
    "{{ transform_identifier: 'name' }} is the token of an earlier transform.",
  input: proxyInput,
  examples: ['coffer proxy create --name billing --destination-url https://api.example.com/v1'],
  check: checkBody,
  run: (context, input, findBuild) => addProxy(context, input, findBuild),
})

/**
 * `chosen`: the id and the key that a seed has chosen. Other callers cannot choose these values, because `input` does
 * not contain them.
 * @throws CofferError `conflict` if the id or the key is in use
 */
export async function addProxy(
  context: Context,
  input: Given,
  findBuild: FindBuild,
  chosen: { id?: string | undefined; key?: string | undefined } = {},
) {
  const key = chosen.key ?? randomKey(context.random)
  const attributes = { key, ...(await readBody(context, input)) }
  const built = build(context, undefined, attributes, findBuild)
  const record = await proxies.add(context, built, chosenId(chosen.id))
  const entry = { id: await context.hashSecret(key), tenant: context.caller.tenant, proxy_id: record.id }
  await context.store.insert('api_key', 0, entry, { fresh: chosen.key === undefined })
  return viewProxy(context, record)
}

const listProxies = list({
  ...proxies.listDeclaration,
  summary: 'List proxies, newest first.',
  input: inputSchema([], {
    id: filterBy('Only the proxy with this id.'),
    name: nameFilter,
    ...pageInput(100),
  }),
  examples: ['coffer proxy list', `coffer proxy list --name 'pay*'`],
  run: proxies.list,
})

const updateProxy = change({
  ...proxies.updateDeclaration,
  plaintext: 'refused',
  summary: 'Replace the attributes of a proxy; its key stays.',
  input: lenientInput(['id', 'name', 'destination_url'], { id: proxyId, ...proxyBody }),
  examples: ['coffer proxy update payments --name billing --destination-url https://api.example.com/v2'],
  check: checkBody,
  async run(context, input, findBuild) {
    const before = runningProxy(await proxies.require(context, input.id), context.now)
    const attributes = build(context, before, await readBody(context, input), findBuild)
    return viewProxy(context, await proxies.change(context, before, attributes))
  },
})

const patchProxy = change({
  ...proxies.patchDeclaration,
  plaintext: 'refused',
  summary: 'Change a proxy: the configuration is merged, other given attributes are replaced.',
  details:
    'The body is a merge patch (RFC 7396). Only the attributes in the patch are changed. Null removes an attribute, or an\n' +
    'entry of the configuration.',
  input: lenientInput(['id'], { id: proxyId, ...proxyPatch }),
  examples: ['echo value | coffer proxy patch payments --configuration KEY=-'],
  check: checkBody,
  async run(context, input, findBuild) {
    const before = runningProxy(await proxies.require(context, input.id), context.now)
    // If the application was deleted before this patch, the patched proxy has no application.
    const bound = await reactor.findApplicationOf(context, before)
    const replaceable: Record<string, unknown> = { ...before, application: bound && { id: bound.id } }
    // If a patch has the singular form (`request_transform`), this transform replaces the list of transforms.
    for (const direction of DIRECTIONS)
      if (`${direction}_transform` in input) delete replaceable[`${direction}_transforms`]
    const patched = mergePatch(replaceable, reactor.unbinding(input)) as Given
    const attributes = await readBody(context, patched)
    const isNewVersion = NEW_VERSION.some((name) => name in input)
    await proxies.change(
      context,
      before,
      isNewVersion ? build(context, before, attributes, findBuild) : attributes,
    )
    return undefined
  },
})

const deleteProxy = proxies.delete({
  summary: 'Delete a proxy; its key stops working immediately.',
  examples: ['coffer proxy delete payments --yes'],
  confirmation: 'This deletes the configuration and the key of proxy',
  async before(context, { key }) {
    await removeApiKey(context.store, await context.hashSecret(key))
  },
})

type Given = Infer<typeof proxyInput>

/** A patch that contains one of these attributes requests a new version of the proxy. */
const NEW_VERSION = [
  'configuration',
  ...DIRECTIONS.flatMap((each) => [`${each}_transform`, `${each}_transforms`]),
]

function build<A extends ProxyVersion>(
  { now }: Context,
  before: ProxyRecord | undefined,
  attributes: A,
  findBuild: FindBuild,
) {
  const { configuration, request_transforms, response_transforms } = attributes
  const version: ProxyVersion = { configuration, request_transforms, response_transforms }
  const codes = [...request_transforms, ...response_transforms].map(builtCodeOf)
  return { ...attributes, ...request<ProxyVersion>(before, version, findBuild(...codes), now, VERSIONED) }
}

/** Validates the body, including the expressions of its transforms. @throws CofferError `validation` */
async function checkBody(given: Readonly<Record<string, unknown>>, tools: CheckTools): Promise<FindBuild> {
  checkProxy(given)
  for (const direction of DIRECTIONS)
    await findExpressions({}, tools, { places: findTemplates(given, direction), useOf: () => direction })
  const transforms = DIRECTIONS.flatMap((direction) => readTransforms(given, direction))
  return prepareBuild(tools, ...transforms.map(builtCodeOf).map(wholeVersion))
}

/** @throws CofferError `validation` if the application, the reactor or the configuration is unsuitable */
async function readBody(context: Context, given: Given) {
  checkProxy(given)
  const { name, destination_url, require_auth, disable_detokenization } = given
  const errors: PropertyErrors = {}
  const reactors = {
    request_reactor_id: given.request_reactor_id || undefined,
    response_reactor_id: given.response_reactor_id || undefined,
  }
  for (const [name, id] of Object.entries(reactors))
    if (id !== undefined && (await context.store.get('reactor', context.caller.tenant, id)) === undefined)
      addError(errors, name, 'no reactor has this id')
  return {
    name,
    destination_url,
    ...(await reactor.readBinding(context, given, errors)),
    require_auth: require_auth ?? true,
    disable_detokenization: disable_detokenization ?? false,
    request_transforms: readTransforms(given, 'request'),
    response_transforms: readTransforms(given, 'response'),
    ...reactors,
  }
}

async function viewProxy(context: Context, stored: ProxyRecord): Promise<Infer<typeof proxyOutput>> {
  const record = runningProxy(stored, context.now)
  const { application_id: _, requested: __, ...rest } = record
  const { state, attributes, error } = viewState(record, context.now)
  const requested = attributes && { proxy: attributes, ...error }
  // If the application of the proxy was deleted, the view has no application.
  const application_id = (await reactor.findApplicationOf(context, record))?.id
  const onlyOf = (list: ProxyRecord['request_transforms']) => (list.length === 1 ? list[0] : undefined)
  const request_transform = onlyOf(record.request_transforms)
  const response_transform = onlyOf(record.response_transforms)
  const optional = omitUndefined({ requested, application_id, request_transform, response_transform })
  return { ...rest, state, ...optional }
}

export const noun = {
  name: 'proxy',
  summary: 'Call other servers with the data of tokens',
  operations: [
    createProxy,
    listProxies,
    proxies.get('coffer proxy get payments'),
    updateProxy,
    patchProxy,
    deleteProxy,
    callProxy,
  ],
}
