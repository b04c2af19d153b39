import { operation } from '../../framework/operation.js'
import { arrayOf, object, text, texts } from '../../framework/output.js'
import { closedInput, type Infer } from '../../framework/schema.js'
import { readAll } from '../../storage/pages.js'
import * as formula from './formula.js'

const names = {
  type: 'array',
  items: {
    type: 'object',
    properties: { name: { type: 'string' } },
    required: ['name'],
    additionalProperties: true,
  },
  maxItems: 1000,
} as const

const checkFormulaCode = operation({
  name: 'formula check',
  audience: 'owner',
  summary: 'Compile code without calling it, and list the properties that it reads.',
  details:
    'The file is JavaScript, or a formula as JSON whose code may be the name of a file in the same directory. With a\n' +
    'contract, a formula as JSON, it also lists the properties that the code reads but the contract lacks. Reads through\n' +
    'other variables or computed names are not found. Needs no vault.',
  input: closedInput(['code'], {
    code: { type: 'string' },
    contract: {
      type: 'object',
      properties: { configuration: names, request_parameters: names },
      additionalProperties: true,
    },
  }),
  output: object({
    'file?': text,
    reads: object({ args: texts, configuration: texts }),
    'lacks?': object({ request_parameters: texts, configuration: texts }),
  }),
  examples: [
    'coffer formula get greet --fields code -o value > greet.js && coffer formula check greet.js',
    'coffer formula get greet > greet.json && coffer formula check greet.json',
  ],
  runOffline: async ({ reactors }, { code, contract }) => {
    const { fault, ...reads } = await (await reactors()).check(code)
    if (fault !== undefined) throw fault
    if (contract === undefined) return { reads }
    const { request_parameters = [], configuration = [] } = contract
    // A parameter declares what is inside of it, and that it is inside of something.
    const lacks = {
      request_parameters: reads.args.filter(
        (read) =>
          !request_parameters.some(
            ({ name }) => `${name}.`.startsWith(`${read}.`) || read.startsWith(`${name}.`),
          ),
      ),
      configuration: reads.configuration.filter((read) => !configuration.some(({ name }) => name === read)),
    }
    return { reads, lacks }
  },
})

const installFormulas = operation({
  name: 'formula install',
  audience: 'owner',
  summary: 'Install official formulas: those included with coffer, or one from a file.',
  details: 'They are visible in every tenant. An official formula with the same name is replaced.',
  input: closedInput(['formulas'], { formulas: names }),
  output: arrayOf(formula.formulaOutput),
  columns: ['id', 'name', 'type', 'status', 'created_at'],
  examples: ['coffer formula install', 'coffer formula install card-alias'],
  runDetached: async ({ caller, inUnit, perform }, { formulas }) => {
    const installed: unknown[] = []
    for (const given of formulas) {
      const official = await inUnit(({ store }) => readAll(store, 'formula', formula.VAULT_TENANT))
      const known = official.find(({ name }) => name === given.name)
      const body = { ...given, type: 'official' }
      installed.push(
        known === undefined
          ? await perform(caller, formula.createFormula, body)
          : await perform(caller, formula.updateFormula, { ...body, id: known.id }),
      )
    }
    return installed as Infer<typeof formula.formulaOutput>[]
  },
})

export const noun = {
  name: 'formula',
  summary: 'Define the code that reactors run',
  operations: [
    formula.createFormula,
    formula.listFormulas,
    formula.getFormula,
    formula.updateFormula,
    formula.deleteFormula,
    checkFormulaCode,
    installFormulas,
  ],
}
