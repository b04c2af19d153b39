/** Operations on formulas for the vault's owner: checking code and installing official formulas. */
import { operation } from '../../framework/operation.js'
import { arrayOf, object, text, texts } from '../../framework/output.js'
import type { List } from '../../framework/page.js'
import { closedInput, type Infer } from '../../framework/schema.js'
import { createFormula, listFormulas, updateFormula } from './formula.js'
import { formulaOutput } from './formula-attributes.js'

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

export const checkFormulaCode = operation({
  name: 'formula check',
  audience: 'owner',
  summary: 'Compile code without calling it, and list the properties that it reads.',
  details:
    'The file is JavaScript, or a formula as JSON whose code may be the name of a file in the same directory. With a\n' +
    'contract, a formula as JSON, it also lists the properties that the code reads but the contract lacks. Reads of a\n' +
    'whole object or of a computed name are listed as unknown. Needs no vault.',
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
    reads: object({ args: texts, configuration: texts, unknown: texts }),
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
    const parameters = (contract.request_parameters ?? []).map(({ name }) => name)
    const configured = (contract.configuration ?? []).map(({ name }) => name)
    const isDeclared = (read: string) =>
      parameters.some((name) => name === read || name.startsWith(`${read}.`) || read.startsWith(`${name}.`))
    const lacks = {
      request_parameters: reads.args.filter((read) => !isDeclared(read)),
      configuration: reads.configuration.filter((read) => !configured.includes(read)),
    }
    return { reads, lacks }
  },
})

export const installFormulas = operation({
  name: 'formula install',
  audience: 'owner',
  summary: 'Install official formulas: those included with coffer, or one from a file.',
  details: 'They are visible in every tenant. An official formula with the same name is replaced.',
  input: closedInput(['formulas'], { formulas: names }),
  output: arrayOf(formulaOutput),
  columns: ['id', 'name', 'type', 'status', 'created_at'],
  examples: ['coffer formula install', 'coffer formula install card-alias'],
  runDetached: async ({ caller, perform }, { formulas }) => {
    const findOfficial = async (name: string): Promise<string | undefined> => {
      const size = 100
      for (let page = 1; ; page++) {
        const list = await perform(caller, listFormulas, { name, page, size })
        const { data, pagination } = list as List<{ id: string; name: string; type: string }>
        const found = data.find((formula) => formula.name === name && formula.type === 'official')
        if (found !== undefined || page >= pagination.total_pages) return found?.id
      }
    }
    const installed: unknown[] = []
    for (const formula of formulas) {
      const body = { ...formula, type: 'official' }
      const id = await findOfficial(formula.name)
      installed.push(
        id === undefined
          ? await perform(caller, createFormula, body)
          : await perform(caller, updateFormula, { ...body, id }),
      )
    }
    return installed as Infer<typeof formulaOutput>[]
  },
})
