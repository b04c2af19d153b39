/**
 * Formulas: code that reactors run, and the parameters of this code. Official formulas belong to the vault,
 * and every tenant sees them.
 */
import { omitUndefined } from '../../domain/omit-undefined.js'
import * as rules from '../../domain/reactor/formula.js'
import type { FormulaRecord } from '../../domain/records/records.js'
import { MAX_NAME_LENGTH } from '../../domain/text/display-name.js'
import { CofferError, conflict, invalid } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { owner } from '../../framework/declaration.js'
import { change, detached, list, offline } from '../../framework/operation.js'
import * as output from '../../framework/output.js'
import { pageInput } from '../../framework/page.js'
import {
  closedInput,
  displayName,
  type Infer,
  idOf,
  inputSchema,
  nameFilter,
} from '../../framework/schema.js'
import { findNewest, readAll, type StoreReader } from '../../storage/store.js'
import { chosenId, manage } from '../manage.js'

const { arrayOf, boolean, component, enumOf, object, text, uuid } = output

export const VAULT_TENANT = 0

const formulaId = idOf('formula', 'The id of the formula, or its name.')

const name = { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH } as const

/** This limit is in characters. `domain/reactor/` also checks the same limit in bytes. */
export const codeText = { type: 'string', minLength: 1, maxLength: rules.MAX_CODE_BYTES } as const

const elementProperties = {
  name,
  description: { type: 'string', maxLength: rules.MAX_DESCRIPTION_LENGTH },
  type: { type: 'string', enum: rules.VALUE_TYPES },
} as const
const elements = { type: 'array', maxItems: rules.MAX_ELEMENTS } as const
const element = { type: 'object', required: ['name', 'type'], additionalProperties: true } as const

const formulaBody = {
  name: displayName,
  description: {
    type: 'string',
    maxLength: rules.MAX_DESCRIPTION_LENGTH,
    description: 'The purpose of the formula.',
  },
  type: {
    type: 'string',
    enum: rules.FORMULA_TYPES,
    description: 'private or official. Only the owner of the vault can create an official formula.',
  },
  icon: { type: 'string', maxLength: rules.MAX_ICON_LENGTH, description: 'A PNG or JPEG as a data URL.' },
  code: { ...codeText, description: 'A CommonJS module that exports an asynchronous function: @formula.js.' },
  configuration: {
    ...elements,
    description: 'A parameter that each reactor sets, as JSON: name, type, description.',
    items: { ...element, properties: elementProperties },
  },
  request_parameters: {
    ...elements,
    flag: 'request-parameter',
    description: 'A parameter of each invocation, as JSON: name, type, optional, description.',
    items: { ...element, properties: { ...elementProperties, optional: { type: 'boolean' } } },
  },
} as const

const formulaInput = inputSchema(['name', 'type', 'code'], formulaBody)

const elementOutput = { name: text, 'description?': text, type: { enum: rules.VALUE_TYPES } } as const

export const formulaOutput = component('Formula', ['id', 'name', 'type', 'status', 'created_at'], {
  id: uuid,
  name: text,
  'description?': text,
  type: { enum: rules.FORMULA_TYPES },
  status: enumOf('verified', 'coming_soon'),
  'icon?': text,
  code: text,
  configuration: arrayOf(object(elementOutput)),
  request_parameters: arrayOf(object({ ...elementOutput, 'optional?': { type: 'boolean' } })),
  ...output.optionalAudit,
})

const formulas = manage({
  name: 'formula',
  kind: 'formula',
  entity: 'reactor_formula',
  path: '/reactor-formulas',
  permission: 'reactor',
  id: formulaId,
  output: formulaOutput,
  view: (_, record) => record,
  find: requireFormula,
  tenantOf: ({ caller }, { type }) => (type === 'official' ? VAULT_TENANT : caller.tenant),
})

export const createFormula = change({
  ...formulas.createDeclaration,
  plaintext: 'refused',
  summary: 'Create a formula: code and the parameters that it takes.',
  details:
    'The code exports one asynchronous function that takes { args, configuration, svc } and returns { raw, tokenize }:\n' +
    'raw is returned unchanged, and the values in tokenize are replaced by tokens. To compile code without calling it:\n' +
    'coffer formula check.',
  input: formulaInput,
  examples: [
    `coffer formula create --name greet --type private --code 'module.exports = async ({ args }) => ({ raw: { hello: args.name } })'`,
  ],
  check: rules.checkFormula,
  run: (context, input) => addFormula(context, input),
})

/** `id`: the id that a seed has chosen. */
export async function addFormula(context: Context, input: Infer<typeof formulaInput>, id?: string) {
  if (input.type === 'official') requireOwner(context)
  return formulas.add(context, { ...readBody(input), status: 'verified' }, chosenId(id))
}

const listFormulas = list({
  ...formulas.listDeclaration,
  summary: 'List formulas, official and private, newest first.',
  input: inputSchema([], { name: nameFilter, ...pageInput(100) }),
  examples: ['coffer formula list', `coffer formula list --name 'gre*'`],
  run: (session, input) => formulas.list(session, input, [VAULT_TENANT, session.caller.tenant]),
})

const updateFormula = change({
  ...formulas.updateDeclaration,
  plaintext: 'refused',
  summary: 'Replace a formula; its reactors then run the new code.',
  details:
    'Omitted attributes are removed. A reactor whose configuration becomes invalid answers 400 until the reactor is updated.',
  input: inputSchema(['id', 'name', 'type', 'code'], { id: formulaId, ...formulaBody }),
  examples: [
    'coffer formula get greet --fields code -o value | coffer formula update greet --name greeting --type private --code -',
  ],
  check: rules.checkFormula,
  async run(context, input) {
    const given = readBody(input)
    const before = await requireFormula(context, input.id)
    if ([before.type, given.type].includes('official')) requireOwner(context)
    if (before.type !== given.type) throw invalid('type', `must stay ${before.type}`)
    return formulas.change(context, before, given)
  },
})

const deleteFormula = formulas.delete({
  summary: 'Delete a formula that no reactor uses.',
  examples: ['coffer reactor delete greet --yes && coffer formula delete greet --yes'],
  confirmation: 'This deletes the code and parameters of formula',
  async before(context, record) {
    if (record.type === 'official') requireOwner(context)
    if (await isInUse(context, record))
      throw conflict('A reactor uses this formula. Delete the reactor first.')
  },
})

/** Finds a formula of the tenant, or an official formula. @throws CofferError `not_found` */
async function requireFormula(context: Context, formulaId: string): Promise<FormulaRecord> {
  const record = await findFormula(context.store, context.caller.tenant, formulaId)
  if (record !== undefined) return record
  throw new CofferError('not_found', 'There is no formula with this id.')
}

export async function findFormula(store: StoreReader, tenant: number, formulaId: string) {
  const own = await store.get('formula', tenant, formulaId)
  return own ?? store.get('formula', VAULT_TENANT, formulaId)
}

function requireOwner({ caller }: Context): void {
  if (caller.actor.type !== 'application') return
  throw new CofferError('forbidden', 'Only the owner of the vault can create or change official formulas.')
}

async function isInUse({ store, caller }: Context, record: FormulaRecord): Promise<boolean> {
  const where = { field: 'formula', value: record.id }
  const isOfficial = record.type === 'official'
  const tenants = isOfficial ? await readAll(store, 'tenant', VAULT_TENANT) : [{ number: caller.tenant }]
  for (const { number } of tenants) {
    if ((await findNewest(store, 'reactor', number, where)) !== undefined) return true
  }
  return false
}

/** Omits unknown properties of the parameters. */
function readBody(input: Infer<typeof formulaInput>) {
  const { name, description, type, icon, code, configuration = [], request_parameters = [] } = input
  const readElement = ({ name, description, type }: rules.FormulaBody['configuration'][number]) => {
    return { name, ...omitUndefined({ description }), type }
  }
  const readParameter = (given: rules.FormulaBody['request_parameters'][number]) => {
    return { ...readElement(given), optional: given.optional ?? false }
  }
  const elements = {
    configuration: configuration.map(readElement),
    request_parameters: request_parameters.map(readParameter),
  }
  return { name, description, type, icon, code, ...elements }
}

const checkFormulaCode = offline({
  name: 'formula check',
  access: owner,
  summary: 'Compile code without calling it.',
  details:
    'The file is JavaScript, or a formula as JSON. In the JSON, code may be the path of a JavaScript file, relative to the\n' +
    'JSON file. Needs no vault.',
  input: closedInput(['code'], { code: { type: 'string' } }),
  output: object({ 'file?': text, compiles: boolean }),
  examples: [
    'coffer formula get greet --fields code -o value > greet.js && coffer formula check greet.js',
    'coffer formula get greet > greet.json && coffer formula check greet.json',
  ],
  run: async ({ reactors }, { code }) => {
    await (await reactors()).check(code)
    return { compiles: true }
  },
})

const installFormulas = detached({
  name: 'formula install',
  access: owner,
  summary: 'Install official formulas: those included with coffer, or one from a file.',
  details:
    'Official formulas are visible in every tenant. An official formula with the same name is replaced.',
  input: closedInput(['formulas'], {
    formulas: {
      type: 'array',
      items: {
        type: 'object',
        properties: { name: { type: 'string' } },
        required: ['name'],
        additionalProperties: true,
      },
      maxItems: 1000,
    },
  }),
  output: arrayOf(formulaOutput),
  cli: { columns: ['id', 'name', 'type', 'status', 'created_at'] },
  examples: ['coffer formula install', 'coffer formula install card-alias'],
  run: async ({ caller, inUnit, perform }, { formulas }) => {
    const installed: unknown[] = []
    for (const given of formulas) {
      const official = await inUnit(({ store }) => readAll(store, 'formula', VAULT_TENANT))
      const known = official.find(({ name }) => name === given.name)
      const body = { ...given, type: 'official' }
      installed.push(
        known === undefined
          ? await perform(caller, createFormula, body)
          : await perform(caller, updateFormula, { ...body, id: known.id }),
      )
    }
    return installed as Infer<typeof formulaOutput>[]
  },
})

export const noun = {
  name: 'formula',
  summary: 'Define the code that reactors run',
  operations: [
    createFormula,
    listFormulas,
    formulas.get('coffer formula get greet --fields code -o value > greet.js'),
    updateFormula,
    deleteFormula,
    checkFormulaCode,
    installFormulas,
  ],
}
