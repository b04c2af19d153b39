import { permissionsOf } from '../../domain/access/permissions.js'
import { mergePatch } from '../../domain/json/json.js'
import { type Lenient, omitUndefined } from '../../domain/omit-undefined.js'
import { addError, collect, refuseErrors } from '../../domain/property-errors.js'
import { castConfiguration, MAX_ELEMENTS, toTexts } from '../../domain/reactor/formula.js'
import { checkReactor, checkReactorPatch, readConfiguration } from '../../domain/reactor/reactor.js'
import {
  completeRuntime,
  IMAGES,
  MAX_ASYNC_TIMEOUT,
  MAX_RUNTIME_PERMISSIONS,
  MAX_VERSION_CHARACTERS,
  MAX_WARM_CONCURRENCY,
  RESOURCES,
} from '../../domain/reactor/runtime.js'
import { request, STATES, settled } from '../../domain/reactor/state.js'
import type { ReactorVersion } from '../../domain/records/reactor-record.js'
import type { ApplicationRecord, ReactorRecord } from '../../domain/records/records.js'
import { CofferError, conflict, invalid, type PropertyErrors } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { concealValues } from '../../framework/no-reveal.js'
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
import { removeAll } from '../../framework/unit.js'
import { findNewest } from '../../storage/store.js'
import { codeText, findFormula, formulaOutput } from '../formula/noun.js'
import { chosenId, manage } from '../manage.js'
import { buildErrorOutput, type FindBuild, prepareBuild, viewState, wholeVersion } from './build.js'

const CLIENT_PERMISSIONS = permissionsOf('private')

const { component, enumOf, object, text, textMap, uuid } = output

const version = { type: 'string', maxLength: MAX_VERSION_CHARACTERS } as const
const packages = { type: 'object', additionalProperties: version, maxProperties: MAX_ELEMENTS } as const

const runtime = {
  type: 'object',
  isEmptyAbsent: true,
  properties: {
    image: { type: 'string', enum: IMAGES },
    async: { type: 'boolean' },
    dependencies: packages,
    resolutions: packages,
    warm_concurrency: { type: 'integer', minimum: 0, maximum: MAX_WARM_CONCURRENCY },
    timeout: { type: 'integer', minimum: 0, maximum: MAX_ASYNC_TIMEOUT },
    resources: { type: 'string', enum: RESOURCES },
    permissions: {
      type: 'array',
      items: { type: 'string', enum: CLIENT_PERMISSIONS },
      maxItems: MAX_RUNTIME_PERMISSIONS,
    },
  },
  additionalProperties: false,
} as const

export const runtimeOutput = { ...runtime, required: ['image'] } as const

export const configurationOutput = { ...textMap, inNoReveal: concealValues } as const

const reactorOutput = component('Reactor', ['id', 'name', 'formula.name', 'application.name', 'created_at'], {
  id: uuid,
  tenant_id: uuid,
  name: text,
  state: enumOf(...STATES),
  'requested?': object({
    reactor: object({ 'code?': text, 'runtime?': runtimeOutput, configuration: configurationOutput }),
    ...buildErrorOutput,
  }),
  'formula?': formulaOutput,
  'code?': text,
  configuration: configurationOutput,
  'application?': object({ id: uuid, name: text, type: enumOf('public', 'private') }),
  'runtime?': runtimeOutput,
  ...output.optionalAudit,
})

export const reactorId = idOf('reactor', 'The id of the reactor, or its name.')

export function reference(refersTo: string, description: string) {
  return { ...lenientInput([], { id: { type: 'string' } }), refersTo, description } as const
}

export function configurationOf(description: string) {
  const map = { type: 'object', additionalProperties: {}, maxProperties: MAX_ELEMENTS } as const
  return { ...map, sensitive: true, description } as const
}

const reactorBody = {
  name: displayName,
  code: {
    ...codeText,
    description:
      'A CommonJS module that exports an asynchronous function, instead of a formula: @reactor.js.',
  },
  configuration: configurationOf('A configuration parameter: KEY=value.'),
  application: reference(
    'app',
    'The application that the client svc of the code acts as: its id or name, or {"id":"…"}.',
  ),
  runtime: {
    ...runtime,
    description: 'How the code runs, as JSON: timeout (seconds), permissions of the client svc, image.',
  },
} as const

const reactorPatch = {
  ...patchOf(reactorBody, ['name', 'code']),
  runtime: { ...reactorBody.runtime, nullable: true, properties: patchOf(runtime.properties) },
}

const reactors = manage({
  name: 'reactor',
  kind: 'reactor',
  path: '/reactors',
  permission: 'reactor',
  id: reactorId,
  output: reactorOutput,
  view: viewReactor,
})

export const createReactor = change({
  ...reactors.createDeclaration,
  plaintext: 'refused',
  summary: 'Create a reactor: code, or a formula, with a configuration.',
  details:
    'The code exports one asynchronous function that takes { args, configuration, req, logger, svc } and returns\n' +
    '{ raw, tokenize } or { res }; see coffer formula create. With the image node22 or node24, or without an\n' +
    'application, the client svc has the permissions in runtime.permissions, for every caller.',
  input: {
    ...lenientInput(['name'], {
      ...reactorBody,
      formula: reference('formula', 'The formula that the reactor runs: its id or name, or {"id":"…"}.'),
    }),
    needsOneOf: ['code', 'formula'],
  },
  examples: [
    `coffer reactor create --name hello --code 'module.exports = async ({ req }) => ({ raw: { hello: req.args.name } })'`,
    `coffer reactor create --name greet --formula greet`,
    `coffer formula install card-alias && head -c 24 /dev/urandom | base64 > key.txt && coffer reactor create --name aliases --formula 'Format-preserving card alias' --configuration ALIAS_KEY=@key.txt`,
  ],
  check: (given, tools) => {
    checkNew(given)
    return prepareBuild(tools, wholeVersion(given))
  },
  run: (context, input, findBuild) => addReactor(context, input, findBuild),
})

/** `id`: the id that a seed has chosen. Other callers cannot choose the id, because `input` does not contain it. */
export async function addReactor(
  context: Context,
  input: Given & { formula?: { id?: string } },
  findBuild: FindBuild,
  id?: string,
) {
  const { name, application_id, ...version } = await readBody(context, input, input.formula?.id)
  const built = request<ReactorVersion>(undefined, version, findBuild(version), context.now, VERSIONED)
  const record = await reactors.add(context, { name, application_id, ...built }, chosenId(id))
  return viewReactor(context, record)
}

export const listReactors = list({
  ...reactors.listDeclaration,
  summary: 'List reactors, newest first.',
  input: inputSchema([], {
    id: { ...filterBy('Only the reactor with this id.'), refersTo: 'reactor' },
    name: nameFilter,
    ...pageInput(100),
  }),
  examples: ['coffer reactor list', `coffer reactor list --name 'gre*'`],
  run: reactors.list,
})

export const getReactor = reactors.get('coffer reactor get greet')

export const updateReactor = change({
  ...reactors.updateDeclaration,
  plaintext: 'refused',
  summary: 'Replace the attributes of a reactor; its formula stays, unless code replaces it.',
  input: lenientInput(['id', 'name'], { id: reactorId, ...reactorBody }),
  examples: [`coffer reactor update greet --name greeter --application 'starter private'`],
  check: (given, tools) => {
    checkReactor(given)
    return prepareBuild(tools, wholeVersion(given))
  },
  run: async (context, input, findBuild) => {
    const before = runningReactor(await reactors.require(context, input.id), context.now)
    return viewReactor(context, await replace(context, before, input, findBuild))
  },
})

export const patchReactor = change({
  ...reactors.patchDeclaration,
  plaintext: 'refused',
  summary: 'Change a reactor: configuration and runtime are merged, other given attributes are replaced.',
  details:
    'The body is a merge patch (RFC 7396). Only the attributes in the patch are changed. Null removes the application, the\n' +
    'runtime, or one entry of configuration or runtime. Code replaces a formula.',
  input: lenientInput(['id'], { id: reactorId, ...reactorPatch }),
  examples: [
    `coffer reactor patch greet --code 'module.exports = async ({ args }) => ({ raw: { hi: args.name } })'`,
    `echo '{"name":"hello","application":null}' | coffer reactor patch greet`,
  ],
  check: (given, tools) => {
    checkReactorPatch(given)
    return prepareBuild(tools, { code: given.code, runtime: given.runtime })
  },
  async run(context, input, findBuild) {
    const before = runningReactor(await reactors.require(context, input.id), context.now)
    const { application_id } = before
    const application = application_id === undefined ? undefined : { id: application_id }
    const given = omitUndefined({ ...before, application })
    const patched = mergePatch(given, unbinding(input))
    checkReactor(patched as Given)
    const isNewVersion = ['code', 'configuration', 'runtime'].some((name) => name in input)
    await replace(context, before, patched as Given, isNewVersion ? findBuild : undefined)
    return undefined
  },
})

/** If `findBuild` is undefined, the requested version of the record does not change. */
async function replace(
  context: Context,
  before: ReactorRecord,
  given: Given,
  findBuild?: FindBuild,
): Promise<ReactorRecord> {
  const { formula_id } = before
  if (formula_id === undefined && given.code === undefined)
    throw invalid('code', 'is required: this reactor has no formula')
  const { name, application_id, ...version } = await readBody(context, given, formula_id)
  const built =
    findBuild && request<ReactorVersion>(before, version, findBuild(version), context.now, VERSIONED)
  return reactors.change(context, before, { name, application_id, ...built })
}

const VERSIONED = [
  'formula_id',
  'code',
  'runtime',
  'configuration',
] as const satisfies readonly (keyof ReactorVersion)[]

/** Returns the record with the version that runs now. */
export function runningReactor(record: ReactorRecord, now: number): ReactorRecord {
  return settled<ReactorVersion, ReactorRecord>(record, now, VERSIONED)
}

export const deleteReactor = reactors.delete({
  summary: 'Delete a reactor and its stored runs.',
  examples: ['coffer reactor delete greet --yes'],
  confirmation: 'This deletes the configuration and the runs of reactor',
  async before(context, { id }) {
    const { store, caller } = context
    const where = { field: 'reactor', value: id }
    const proxy = await findNewest(store, 'proxy', caller.tenant, where)
    if (proxy !== undefined) throw conflict('A proxy uses this reactor. Delete or change the proxy first.')
    for (const kind of ['reactor_log', 'reactor_result', 'callback'] as const)
      await removeAll(context, kind, where)
  },
})

export async function findFormulaOf(context: Context, { formula_id }: Pick<ReactorRecord, 'formula_id'>) {
  if (formula_id === undefined) return undefined
  const formula = await findFormula(context.store, context.caller.tenant, formula_id)
  if (formula === undefined) throw new CofferError('internal', 'The formula of this reactor is missing.')
  return formula
}

/** Returns undefined if the reactor has no application, or if the application was deleted. */
export async function findApplicationOf(
  context: Context,
  { application_id }: Pick<ReactorRecord, 'application_id'>,
): Promise<ApplicationRecord | undefined> {
  if (application_id === undefined) return undefined
  return context.store.get('application', context.caller.tenant, application_id)
}

type Given = Infer<{ type: 'object'; properties: typeof reactorBody; required: readonly ['name'] }>

/** @throws CofferError `validation` for invalid attributes, or unless exactly one of code and formula is given */
function checkNew(given: Readonly<Record<string, unknown>>): void {
  const errors: PropertyErrors = {}
  const { code, formula } = given as Lenient<{ code: string; formula: { id: string } }>
  const count = [code, formula?.id].filter((each) => each !== undefined).length
  if (count === 0) addError(errors, 'code', 'is required, unless a formula is given')
  if (count === 2) addError(errors, 'code', 'cannot be given together with a formula')
  collect(errors, '', () => checkReactor(given))
  refuseErrors(errors)
}

/** Returns the attributes to store. Code takes precedence over a formula. @throws CofferError `validation` */
async function readBody(context: Context, given: Given, formula_id: string | undefined) {
  const { name, code, runtime } = given
  const errors: PropertyErrors = {}
  const formula =
    code === undefined && formula_id !== undefined
      ? await findFormula(context.store, context.caller.tenant, formula_id)
      : undefined
  if (code === undefined && formula === undefined) addError(errors, 'formula.id', 'no formula has this id')
  const read = formula && ((values: Values) => toTexts(castConfiguration(formula.configuration, values)))
  return {
    name,
    formula_id: formula?.id,
    code,
    ...(await readBinding(context, given, errors, read)),
    runtime: runtime && completeRuntime(runtime),
  }
}

/** If the patch has an application without an id, sets `application` to null, which removes the application. */
export function unbinding<P extends { application?: { id?: string } | null }>(patch: P): P {
  const { application } = patch
  return application != null && application.id === undefined ? { ...patch, application: null } : patch
}

type Values = Readonly<Record<string, unknown>>

/** @throws CofferError `validation`, which includes `errors` */
export async function readBinding(
  { store, caller }: Context,
  given: { configuration?: Values | undefined; application?: { id?: string } | null | undefined },
  errors: PropertyErrors = {},
  read: (values: Values) => Record<string, string> = readConfiguration,
) {
  const id = given.application?.id
  const configuration = collect(errors, 'configuration', () => read(given.configuration ?? {})) ?? {}
  const bound = id === undefined ? undefined : await store.get('application', caller.tenant, id)
  if (id !== undefined && (bound === undefined || bound.type === 'management'))
    addError(errors, 'application.id', 'no public or private application has this id')
  refuseErrors(errors)
  return { configuration, application_id: bound?.id }
}

async function viewReactor(context: Context, stored: ReactorRecord): Promise<Infer<typeof reactorOutput>> {
  const record = runningReactor(stored, context.now)
  const { formula_id: _, application_id: __, requested: ___, ...rest } = record
  const { state, attributes, error } = viewState(record, context.now)
  const requested = attributes && {
    reactor: {
      configuration: attributes.configuration,
      ...omitUndefined({ code: attributes.code, runtime: attributes.runtime }),
    },
    ...error,
  }
  const formula = await findFormulaOf(context, record)
  const bound = await findApplicationOf(context, record)
  const application = bound && { id: bound.id, name: bound.name, type: bound.type as 'public' | 'private' }
  return { ...rest, state, ...omitUndefined({ requested, formula, application }) }
}
