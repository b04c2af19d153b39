/** `coffer formula check | install | create | update`: formulas in files, and the warning about code that would not run. */
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { parseJson } from '../../domain/json/json.js'
import { CofferError } from '../../errors.js'
import { checkFormulaCode } from '../../operations/formula/owner-formulas.js'
import type { CommandContext } from '../context/context.js'
import { findFixture } from '../context/fixtures.js'
import type { Steps } from '../context/task.js'
import { findPlace, formatFrame } from '../output/code-frame.js'
import { displayLines } from '../output/display.js'
import { printWarning } from '../output/output.js'
import { write } from '../output/terminal.js'

const SHIPPED = ['card-alias', 'matching-hmac', 'json-webhook']

/** A formula as people keep it in files: the code may be the name of a file beside it. */
interface FormulaFile extends Record<string, unknown> {
  name: string
  code: string
  configuration?: { name: string }[]
  request_parameters?: { name: string }[]
}

/** Shows the place in the code where it does not load. */
export const check: Steps = {
  gather: async (context, [file = ''], { contract: contractFile }) => {
    const formula = file.endsWith('.json') ? await readFormula(context, file) : undefined
    const contract =
      typeof contractFile === 'string'
        ? await readFormula(context, contractFile, { isContract: true })
        : formula
    const code = formula?.code ?? (await context.input.readFile(file, 'the file'))
    return { code, ...(contract === undefined ? {} : { contract }) }
  },
  run: async ({ context, input, ask, print, words }) => {
    try {
      const reads = (await ask()) as object
      await print({ file: words[0], ...reads })
    } catch (error) {
      await showPlace(context, String(input.code), error)
      throw error
    }
  },
}

async function showPlace({ terminal }: CommandContext, code: string, error: unknown): Promise<void> {
  const place = error instanceof CofferError ? findPlace(error.errors?.code?.[0] ?? '') : undefined
  if (place !== undefined) await write(terminal.stderr, `${displayLines(formatFrame(code, place))}\n`)
}

export const install: Steps = {
  gather: async (context, [name]) => {
    const files = name === undefined ? SHIPPED.map(findShipped) : [findFormulaFile(context, name)]
    const formulas: FormulaFile[] = []
    for (const file of files) formulas.push(await readFormula(context, file))
    return { formulas }
  },
}

/** Says when the code that was just stored would not run; it is stored all the same. */
export const store: Steps = {
  run: async ({ context, input, ask, print }) => {
    const result = await ask()
    const fault = await findFault(context, input.code)
    if (fault !== undefined) {
      const { message, errors = {} } = fault
      const reason = Object.values(errors)[0]?.[0]
      const more = reason === undefined || message.includes(reason) ? '' : ` ${reason}`
      await printWarning(context.terminal, `The formula is stored, but would not run. ${message}${more}`)
    }
    await print(result)
  },
}

/** What is wrong with `code` before anything calls it. */
async function findFault(context: CommandContext, code: unknown): Promise<CofferError | undefined> {
  const { askOffline } = await import('../context/offline.js')
  try {
    await askOffline(context, checkFormulaCode, { code })
    return undefined
  } catch (error) {
    if (error instanceof CofferError) return error
    throw error
  }
}

function findShipped(name: string): string {
  return findFixture(`formulas/${name}.json`)
}

function findFormulaFile({ cwd }: CommandContext, name: string): string {
  if (SHIPPED.includes(name)) return findShipped(name)
  if (name.endsWith('.json')) return resolve(cwd, name)
  throw new CofferError(
    'usage',
    `There is no formula "${name}". There are ${SHIPPED.join(', ')}, and files: my-formula.json.`,
  )
}

/** @throws CofferError `usage` for what is no formula. A contract needs no code. */
async function readFormula(
  { input }: CommandContext,
  path: string,
  { isContract = false } = {},
): Promise<FormulaFile> {
  const value = parseJson(await input.readFile(path, 'the file'), { source: path, code: 'usage' })
  const { code, configuration, request_parameters } = (value ?? {}) as Partial<FormulaFile>
  const isFormula =
    typeof value === 'object' &&
    (typeof code === 'string' || isContract) &&
    [configuration, request_parameters].every((list) => list === undefined || Array.isArray(list))
  if (!isFormula) throw new CofferError('usage', `${path} holds no formula: an object with code, as JSON.`)
  const formula = value as FormulaFile
  if (isContract || !/^[\w./-]+\.c?js$/.test(formula.code)) return formula
  const beside = isAbsolute(formula.code) ? formula.code : join(dirname(path), formula.code)
  return { ...formula, code: await input.readFile(beside, 'the file of the code') }
}
