/** `coffer formula check` and `install`, and the warning about code that would not run. */
import { existsSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseJson } from '../../domain/json/json.js'
import { CofferError } from '../../errors.js'
import type { CompileReport } from '../../framework/reactor-runtime.js'
import { openReactors } from '../../vault/app.js'
import type { Vault } from '../../vault/vault.js'
import type { Desk } from '../context.js'
import { findPlace, formatFrame } from '../output/code-frame.js'
import { displayLines } from '../output/display.js'
import { chooseFormat, printResult, printWarning } from '../output/output.js'
import { write } from '../output/terminal.js'

const SHIPPED = ['card-alias', 'matching-hmac', 'json-webhook']
const COLUMNS = ['id', 'name', 'type', 'status', 'created_at']

type Flags = Readonly<Record<string, unknown>>

/** A formula as people keep it in files: the code may be the name of a file beside it. */
interface FormulaFile extends Record<string, unknown> {
  name: string
  code: string
  configuration?: { name: string }[]
  request_parameters?: { name: string }[]
}

/** @throws CofferError `formula_invalid` or `reactor_failed` when the code does not load. */
export async function checkFile(desk: Desk, file: string, flags: Flags): Promise<void> {
  const { terminal, config, input } = desk
  const formula = file.endsWith('.json') ? await readFormula(desk, file) : undefined
  const code = formula?.code ?? (await input.readFile(file, 'the file'))
  const contract =
    typeof flags.contract === 'string'
      ? await readFormula(desk, flags.contract, { isContract: true })
      : formula
  const reactors = await openReactors({})
  const { fault, ...reads } = await reactors.check(code).finally(() => reactors.close())
  if (fault !== undefined) {
    const place = findPlace(fault.errors?.code?.[0] ?? '')
    if (place !== undefined) await write(terminal.stderr, `${displayLines(formatFrame(code, place))}\n`)
    throw fault
  }
  const result = { file, reads, ...(contract === undefined ? {} : { lacks: findLacks(reads, contract) }) }
  await printResult(terminal, result, {
    format: chooseFormat(terminal, config.output),
    fields: config.fields,
  })
}

/** What the code reads that the contract does not declare. */
function findLacks(
  { args, configuration }: Omit<CompileReport, 'fault'>,
  contract: FormulaFile,
): { request_parameters: string[]; configuration: string[] } {
  const parameters = (contract.request_parameters ?? []).map(({ name }) => name)
  const names = (contract.configuration ?? []).map(({ name }) => name)
  const isDeclared = (read: string) =>
    parameters.some((name) => name === read || name.startsWith(`${read}.`) || read.startsWith(`${name}.`))
  return {
    request_parameters: args.filter((read) => !isDeclared(read)),
    configuration: configuration.filter((read) => !names.includes(read)),
  }
}

/** Creates official formulas, or replaces those of the same name. @throws CofferError `usage`, `validation` */
export async function installFormulas(desk: Desk, name: string | undefined): Promise<void> {
  const { terminal, config } = desk
  const files = name === undefined ? SHIPPED.map(findShipped) : [findFormulaFile(desk, name)]
  const bodies: FormulaFile[] = []
  for (const file of files) bodies.push(await readFormula(desk, file))
  const installed = await desk.reachVault(async (vault) => {
    const results: unknown[] = []
    for (const body of bodies) results.push(await install(vault, { ...body, type: 'official' }))
    return results
  })
  await printResult(terminal, installed, {
    format: chooseFormat(terminal, config.output),
    columns: COLUMNS,
    fields: config.fields,
  })
}

async function install(vault: Vault, body: FormulaFile): Promise<unknown> {
  const as = { reveal: false }
  const id = await findOfficial(vault, body.name)
  const asked =
    id === undefined
      ? { operation: 'formula create', input: body, as }
      : { operation: 'formula update', input: { ...body, id }, as }
  return (await vault.ask(asked)).result
}

/** The id of the official formula of exactly this name. */
async function findOfficial(vault: Vault, name: string): Promise<string | undefined> {
  const size = 100
  for (let page = 1; ; page++) {
    const asked = { operation: 'formula list', input: { name, page, size }, as: { reveal: false } }
    const { data, pagination } = (await vault.ask(asked)).result as {
      data: { id: string; name: string; type: string }[]
      pagination: { total_pages: number }
    }
    const found = data.find((formula) => formula.name === name && formula.type === 'official')
    if (found !== undefined || page >= pagination.total_pages) return found?.id
  }
}

function findFormulaFile({ cwd }: Desk, name: string): string {
  if (SHIPPED.includes(name)) return findShipped(name)
  if (name.endsWith('.json')) return resolve(cwd, name)
  throw new CofferError(
    'usage',
    `There is no formula "${name}". There are ${SHIPPED.join(', ')}, and files: my-formula.json.`,
  )
}

/** Fixtures stand beside the one bundled file's folder, and beside that of the compiled sources. */
function findShipped(name: string): string {
  const places = ['../fixtures/formulas/', '../../../../fixtures/formulas/']
  const paths = places.map((place) => fileURLToPath(new URL(`${place}${name}.json`, import.meta.url)))
  const found = paths.find((path) => existsSync(path))
  if (found !== undefined) return found
  throw new CofferError('internal', `The package was installed without fixtures/formulas/${name}.json.`)
}

/** @throws CofferError `usage` for what is no formula. A contract needs no code. */
async function readFormula({ input }: Desk, path: string, { isContract = false } = {}): Promise<FormulaFile> {
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

/** Says when the code that was just stored would not run; it is stored all the same. */
export async function warnOfCode({ terminal }: Desk, vault: Vault, code: unknown): Promise<void> {
  const fault = (await vault.command('formula check', { code })) as {
    message: string
    errors?: Record<string, string[]>
  } | null
  if (fault === null) return
  const reason = Object.values(fault.errors ?? {})[0]?.[0]
  await printWarning(
    terminal,
    `The formula is stored, but would not run. ${fault.message}${reason === undefined || fault.message.includes(reason) ? '' : ` ${reason}`}`,
  )
}
