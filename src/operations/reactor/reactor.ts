/** Reactors: a formula with a configuration, and the application that its code acts as. */
import { castConfiguration, toTexts } from '../../domain/contract.js'
import { MAX_ELEMENTS, MAX_NAME_LENGTH, matchesName } from '../../domain/formula.js'
import { type Lenient, omitUndefined } from '../../domain/omit-undefined.js'
import { addError, collect, refuseErrors } from '../../domain/property-errors.js'
import type { ApplicationRecord, FormulaRecord, ReactorRecord } from '../../domain/records.js'
import { CofferError, type PropertyErrors } from '../../errors.js'
import { type Context, operation } from '../../framework/operation.js'
import { component, enumOf, object, optionalAudit, text, textMap, uuid } from '../../framework/output.js'
import { listOutput, pageInput } from '../../framework/page.js'
import { requireRecord } from '../../framework/require-record.js'
import { readScanned } from '../../framework/scan.js'
import { filterBy, type Infer, inputSchema } from '../../framework/schema.js'
import { findFormula } from '../formula/formula.js'
import { formulaOutput, nameFilter } from '../formula/formula-attributes.js'
import { removeRuns } from './reactor-log.js'

const reactorOutput = component('Reactor', ['id', 'name', 'formula.name', 'application.name', 'created_at'], {
  id: uuid,
  tenant_id: uuid,
  name: text,
  formula: formulaOutput,
  configuration: textMap,
  'application?': object({ id: uuid, name: text, type: enumOf('public', 'private') }),
  ...optionalAudit,
})

const id = { type: 'string', description: 'The id of the reactor.' } as const
const reference = (description: string) =>
  ({
    type: 'object',
    properties: { id: { type: 'string' } },
    required: ['id'],
    additionalProperties: true,
    description,
  }) as const

const body = {
  name: { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'A display name.' },
  configuration: {
    type: 'object',
    additionalProperties: {},
    maxProperties: MAX_ELEMENTS,
    sensitive: true,
    description: 'A configuration parameter of the formula: KEY=value.',
  },
  application: reference('The application that its client acts as, as JSON: {"id":"…"}.'),
} as const

/** Properties of other services that this one lacks; refused, because they would change what the reactor does. */
const UNSUPPORTED = [
  'code',
  'runtime',
  'image',
  'dependencies',
  'resolutions',
  'permissions',
  'resources',
  'timeout',
  'async',
  'warm_concurrency',
]

export const createReactor = operation({
  name: 'reactor create',
  summary: 'Create a reactor: a formula with a configuration.',
  permissions: ['reactor:create'],
  route: 'POST /reactors',
  success: 201,
  input: inputSchema(['name', 'formula'], {
    ...body,
    formula: reference('The formula that it runs, as JSON: {"id":"…"}.'),
  }),
  output: reactorOutput,
  examples: [`coffer reactor create --name greeter --formula '{"id":"9a1f…"}' --configuration KEY=@key.txt`],
  log: { operation: 'create', message: 'Reactor created' },
  check: checkBody,
  async run(context, input) {
    const formula = await findFormula(context.store, context.caller.tenant, input.formula.id)
    const record: ReactorRecord = {
      id: context.createUuid(),
      tenant_id: (await context.tenant()).id,
      name: input.name,
      formula_id: input.formula.id,
      ...(await readBody(context, formula, input)),
      created_by: context.caller.actor.id,
      created_at: context.date,
    }
    await context.store.insert('reactor', context.caller.tenant, record, { fresh: true })
    context.reached('reactor', record.id)
    return viewReactor(context, record)
  },
})

export const listReactors = operation({
  name: 'reactor list',
  summary: 'List reactors, newest first.',
  permissions: ['reactor:read'],
  route: 'GET /reactors',
  input: inputSchema([], {
    id: filterBy('Only the reactor with this id.'),
    name: nameFilter,
    ...pageInput(100),
  }),
  output: listOutput(reactorOutput),
  examples: ['coffer reactor list', `coffer reactor list --name 'pay*'`],
  runDetached(session, { id: ids, name, ...asked }) {
    const matches = (record: ReactorRecord) =>
      (ids === undefined || ids.includes(record.id)) && (name === undefined || matchesName(record.name, name))
    const scan = { kind: 'reactor' as const, tenants: [session.caller.tenant], matches }
    return readScanned(session, scan, asked, { show: viewReactor })
  },
})

export const getReactor = operation({
  name: 'reactor get',
  summary: 'Get a reactor by its id.',
  permissions: ['reactor:read'],
  route: 'GET /reactors/{id}',
  input: inputSchema(['id'], { id }),
  output: reactorOutput,
  examples: ['coffer reactor get 9a1f…'],
  log: { operation: 'read', message: 'Reactor retrieved' },
  async run(context, input) {
    const record = await requireRecord(context, 'reactor', input.id)
    context.reached('reactor', record.id)
    return viewReactor(context, record)
  },
})

export const updateReactor = operation({
  name: 'reactor update',
  summary: 'Replace the name, configuration and application of a reactor; its formula stays.',
  permissions: ['reactor:update'],
  route: 'PUT /reactors/{id}',
  input: inputSchema(['id', 'name'], { id, ...body }),
  output: reactorOutput,
  examples: ['coffer reactor update 9a1f… --name greeter --configuration KEY=@key.txt'],
  log: { operation: 'update', message: 'Reactor updated' },
  check: checkBody,
  async run(context, input) {
    const { application_id: _, ...before } = await requireRecord(context, 'reactor', input.id)
    const formula = await requireFormulaOf(context, before)
    const record: ReactorRecord = {
      ...before,
      name: input.name,
      ...(await readBody(context, formula, input)),
      modified_by: context.caller.actor.id,
      modified_at: context.date,
    }
    await context.store.replace('reactor', context.caller.tenant, record)
    context.reached('reactor', record.id)
    return viewReactor(context, record)
  },
})

export const deleteReactor = operation({
  name: 'reactor delete',
  summary: 'Delete a reactor and its stored runs.',
  permissions: ['reactor:delete'],
  route: 'DELETE /reactors/{id}',
  input: inputSchema(['id'], { id }),
  examples: ['coffer reactor delete 9a1f… --yes'],
  destroys: 'This deletes the configuration and the runs of reactor',
  log: { operation: 'delete', message: 'Reactor deleted' },
  async run(context, input) {
    const record = await requireRecord(context, 'reactor', input.id)
    await context.store.remove('reactor', context.caller.tenant, record.id)
    await removeRuns(context.store, context.caller.tenant, record.id)
    context.reached('reactor', record.id)
    return undefined
  },
})

/** The formula of a reactor, which cannot be deleted before the reactor. */
export async function requireFormulaOf(
  context: Context,
  { formula_id }: Pick<ReactorRecord, 'formula_id'>,
): Promise<FormulaRecord> {
  const formula = await findFormula(context.store, context.caller.tenant, formula_id)
  if (formula === undefined) throw new CofferError('internal', 'The formula of this reactor is missing.')
  return formula
}

/** The application of a reactor; undefined without one, or if it was deleted. */
export async function findApplicationOf(
  context: Context,
  { application_id }: ReactorRecord,
): Promise<ApplicationRecord | undefined> {
  if (application_id === undefined) return undefined
  return context.store.get('application', context.caller.tenant, application_id)
}

type ReactorInput = Infer<{ type: 'object'; properties: Omit<typeof body, 'name'> }>

/** @throws CofferError `validation` for unsupported properties and nested configuration values */
function checkBody(input: Lenient<ReactorInput>): void {
  const errors: PropertyErrors = {}
  const given: Readonly<Record<string, unknown>> = { ...input }
  for (const name of UNSUPPORTED.filter((each) => (given[each] ?? undefined) !== undefined))
    addError(errors, name, 'is not supported here: a reactor runs the code of its formula')
  for (const [name, value] of Object.entries(input.configuration ?? {})) {
    if (typeof value === 'object' && value !== null)
      addError(errors, `configuration.${name}`, 'must be a string, a number or a boolean')
  }
  refuseErrors(errors)
}

/** @throws CofferError `validation` for an unknown formula, an unsuitable application, an invalid configuration */
async function readBody(
  context: Context,
  formula: FormulaRecord | undefined,
  { configuration = {}, application }: ReactorInput,
): Promise<Pick<ReactorRecord, 'configuration' | 'application_id'>> {
  const errors: PropertyErrors = {}
  if (formula === undefined) addError(errors, 'formula.id', 'no formula has this id')
  const contract = formula?.configuration
  const values =
    contract && collect(errors, 'configuration', () => castConfiguration(contract, configuration))
  const bound = application && (await context.store.get('application', context.caller.tenant, application.id))
  if (application !== undefined && (bound === undefined || bound.type === 'management'))
    addError(errors, 'application.id', 'no public or private application has this id')
  refuseErrors(errors)
  return {
    configuration: toTexts(values ?? {}),
    ...omitUndefined({ application_id: bound?.id }),
  }
}

async function viewReactor(context: Context, record: ReactorRecord): Promise<Infer<typeof reactorOutput>> {
  const { formula_id: _, application_id: __, configuration, ...rest } = record
  const { id, tenant_id, name, ...dates } = rest
  const formula = await requireFormulaOf(context, record)
  const bound = await findApplicationOf(context, record)
  const application =
    bound === undefined
      ? {}
      : { application: { id: bound.id, name: bound.name, type: bound.type as 'public' | 'private' } }
  return { id, tenant_id, name, formula, configuration, ...application, ...dates }
}
