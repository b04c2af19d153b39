import { operation } from '../../framework/operation.js'
import { arrayOf, boolean, object, text } from '../../framework/output.js'
import { closedInput, type Infer } from '../../framework/schema.js'
import { readAll } from '../../storage/store.js'
import * as formula from './formula.js'

const checkFormulaCode = operation({
  name: 'formula check',
  audience: 'owner',
  summary: 'Compile code without calling it.',
  details:
    'The file is JavaScript, or a formula as JSON whose code may be the name of a file in the same directory. Needs no vault.',
  input: closedInput(['code'], { code: { type: 'string' } }),
  output: object({ 'file?': text, compiles: boolean }),
  examples: [
    'coffer formula get greet --fields code -o value > greet.js && coffer formula check greet.js',
    'coffer formula get greet > greet.json && coffer formula check greet.json',
  ],
  runOffline: async ({ reactors }, { code }) => {
    await (await reactors()).check(code)
    return { compiles: true }
  },
})

const installFormulas = operation({
  name: 'formula install',
  audience: 'owner',
  summary: 'Install official formulas: those included with coffer, or one from a file.',
  details: 'They are visible in every tenant. An official formula with the same name is replaced.',
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
