/** `coffer formula`: reads formulas from files, and warns about code, also of reactors, that fails to load. */
import { existsSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { parseJson } from '../../../domain/json/json.js'
import { omitUndefined } from '../../../domain/omit-undefined.js'
import { CofferError, usage } from '../../../errors.js'
import { checkFormulaCode } from '../../../operations/formula/owner-formulas.js'
import type { CommandContext } from '../../context.js'
import { printPlace } from '../../output/code-frame.js'
import { printWarning } from '../../output/output.js'
import type { Hooks } from '../../task.js'
import { findFixture } from '../fixtures.js'

const INCLUDED = ['card-alias', 'matching-hmac', 'json-webhook']

/** A formula as JSON; `code` may be the name of a file in the same directory. */
interface FormulaFile extends Record<string, unknown> {
  name: string
  code: string
  configuration?: { name: string }[]
  request_parameters?: { name: string }[]
}

/** Prints the place in the code that fails to load. */
export const check: Hooks = {
  gather: async (context, [file = ''], { contract: contractFile }) => {
    const formula = file.endsWith('.json') ? await readFormula(context, file) : undefined
    const contract =
      typeof contractFile === 'string'
        ? await readFormula(context, contractFile, { isContract: true })
        : formula
    const code = formula?.code ?? (await context.input.readFile(file, 'the file'))
    return omitUndefined({ code, contract })
  },
  run: async ({ context, input, ask, print, args }) => {
    try {
      const reads = (await ask()) as object
      await print({ file: args[0], ...reads })
    } catch (error) {
      const reason = error instanceof CofferError ? error.errors?.code?.[0] : undefined
      await printPlace(context.terminal, String(input.code), reason ?? '')
      throw error
    }
  },
}

export const install: Hooks = {
  gather: async (context, [name]) => {
    const files = name === undefined ? INCLUDED.map(findIncluded) : [findFormulaFile(context, name)]
    const formulas: FormulaFile[] = []
    for (const file of files) formulas.push(await readFormula(context, file))
    return { formulas }
  },
}

/** Warns about stored code that fails to load. */
export const store: Hooks = {
  run: async ({ context, input, ask, print }) => {
    const result = await ask()
    const fault = input.code === undefined ? undefined : await findFault(context, input.code)
    if (fault !== undefined) {
      const { message, errors = {} } = fault
      const reason = Object.values(errors)[0]?.[0]
      const more = reason === undefined || message.includes(reason) ? '' : ` ${reason}`
      const isPath = existsSync(resolve(context.cwd, String(input.code)))
      const advice = isPath ? ` ${input.code} is a file: give what is in it as --code @${input.code}` : ''
      const what = `It is stored, but its code fails to load. ${message}${more}${advice}`
      await printWarning(context.terminal, what)
    }
    await print(result)
  },
}

/** Compiles and loads `code` without calling it. */
async function findFault(context: CommandContext, code: unknown): Promise<CofferError | undefined> {
  const { askOffline } = await import('../../target/offline.js')
  try {
    await askOffline(context, checkFormulaCode, { code })
    return undefined
  } catch (error) {
    if (error instanceof CofferError) return error
    throw error
  }
}

function findIncluded(name: string): string {
  return findFixture(`formulas/${name}.json`)
}

function findFormulaFile({ cwd }: CommandContext, name: string): string {
  if (INCLUDED.includes(name)) return findIncluded(name)
  if (name.endsWith('.json')) return resolve(cwd, name)
  throw usage(`There is no formula "${name}". Give ${INCLUDED.join(', ')}, or a file: my-formula.json.`)
}

/** A contract needs no code. @throws CofferError `usage` */
async function readFormula({ input }: CommandContext, path: string, { isContract = false } = {}) {
  const value = parseJson(await input.readFile(path, 'the file'), { source: path, code: 'usage' })
  const { code, configuration, request_parameters } = (value ?? {}) as Partial<FormulaFile>
  const isFormula =
    typeof value === 'object' &&
    (typeof code === 'string' || isContract) &&
    [configuration, request_parameters].every((list) => list === undefined || Array.isArray(list))
  if (!isFormula) throw usage(`${path} is not a formula: a JSON object with code.`)
  const formula = value as FormulaFile
  if (isContract || !/^[\w./-]+\.c?js$/.test(formula.code)) return formula
  const beside = isAbsolute(formula.code) ? formula.code : join(dirname(path), formula.code)
  return { ...formula, code: await input.readFile(beside, 'the file of the code') }
}
