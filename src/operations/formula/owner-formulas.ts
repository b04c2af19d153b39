/** Formulas as the vault's owner works on them: what code reads is listed, and official formulas are installed. */
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
  summary: 'Compile code without calling it, and list what it reads.',
  details:
    'The file is JavaScript, or a formula as JSON whose code is a file beside it. With a contract, which is a\n' +
    'formula as JSON too, it also lists what the code reads that the contract lacks. What is read as a whole or by a\n' +
    'computed name is listed as unknown. Needs no vault.',
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
  examples: ['coffer formula check formula.js', 'coffer formula check formula.js --contract formula.json'],
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
  summary: 'Install official formulas: those that come with this program, or one of your own.',
  details: 'Every tenant sees them. One that is there already, by its name, is replaced.',
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
