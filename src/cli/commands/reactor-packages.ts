/** The commands that link npm packages for reactor code before a deployment, and check code with its packages. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { omitUndefined } from '../../domain/omit-undefined.js'
import {
  ALIASES,
  ANY_VERSION,
  isPackageName,
  splitRequest,
  VERSIONS_FILE,
  withSubpaths,
} from '../../domain/reactor/dependencies.js'
import { CofferError, usage } from '../../errors.js'
import type { LinkedPackage, Linker } from '../../framework/ports/linker.js'
import { openProject, openReactors } from '../../vault/app.js'
import type { CommandContext } from '../context.js'
import { printForRun } from '../output/output.js'
import { reactorOptions } from '../target/vault.js'
import type { TerminalCommand } from '../task.js'

const PRIVATE_DIRECTORY = 0o700
const PRIVATE_FILE = 0o600

interface Row {
  package: string
  version?: string
  bytes?: number
  state: 'ok' | 'wrong'
  reason?: string
}

export const linkPackages: TerminalCommand['run'] = async (context, [directory = '.', ...names], options) => {
  const { out } = options as { out?: string }
  if (out === undefined) throw usage('Name a directory for the linked packages: --out modules')
  const { linker, dependencies } = await openProject(resolve(context.cwd, directory))
  const chosen = names.filter((name) => name !== undefined)
  try {
    const { rows, packages } = await link(linker, chosen.length > 0 ? chosen : dependencies)
    writeModules(resolve(context.cwd, out), packages)
    await report(context, rows)
  } finally {
    linker.close()
  }
}

export const checkCode: TerminalCommand['run'] = async (context, [file = ''], options) => {
  const { packageJson = 'package.json' } = options as { packageJson?: string }
  const code = await context.input.readFile(file, 'the file')
  const { linker } = await openProject(dirname(resolve(context.cwd, packageJson)))
  const reactors = await openReactors(await reactorOptions(context))
  try {
    const wanted = Object.fromEntries(findRequired(code).map((name) => [name, ANY_VERSION]))
    const { rows, packages } = await link(linker, Object.keys(withSubpaths(wanted, code)))
    const loading = rows.every(({ state }) => state === 'ok') ? reactors.check(code, packages) : undefined
    const problem = await loading?.then(
      () => undefined,
      (error: unknown) => describeError(error),
    )
    const own: Row = { package: file, state: problem === undefined ? 'ok' : 'wrong' }
    await report(context, [...rows, { ...own, ...omitUndefined({ reason: problem }) }])
  } finally {
    linker.close()
    await reactors.close()
  }
}

/** If the code threw the error, the message is in `errors.error`. */
function describeError(error: unknown): string {
  if (!(error instanceof CofferError)) throw error
  return error.errors?.error?.[0] ?? error.message
}

/** Links each package alone, so that a package that is too large does not hide the results of the others. */
async function link(linker: Linker, names: readonly string[]) {
  const rows: Row[] = []
  const linked: LinkedPackage[] = []
  for (const name of names) {
    const { packages, findings } = await linker.load({ [name]: ANY_VERSION })
    for (const each of packages)
      rows.push({ package: name, version: each.version, bytes: each.text.length, state: 'ok' })
    for (const { installed, reason } of findings)
      rows.push({ package: name, ...omitUndefined({ version: installed }), state: 'wrong', reason })
    linked.push(...packages)
  }
  return { rows, packages: linked }
}

function writeModules(directory: string, packages: readonly LinkedPackage[]): void {
  const write = (name: string, content: string | Uint8Array) => {
    const path = join(directory, name)
    mkdirSync(dirname(path), { recursive: true, mode: PRIVATE_DIRECTORY })
    writeFileSync(path, content, { mode: PRIVATE_FILE })
  }
  for (const { name, text } of packages) write(`${name}.js`, text)
  const versions = Object.fromEntries(packages.map(({ name, version }) => [name, version]))
  write(VERSIONS_FILE, `${JSON.stringify(versions, null, 2)}\n`)
}

/**
 * Returns the packages that the code requires with a literal name. Modules that Node or Coffer provides are left out.
 */
export function findRequired(code: string): string[] {
  const names = [...code.matchAll(/\brequire\s*\(\s*(['"`])([^'"`]+)\1\s*\)/g)].map(([, , name]) => name!)
  const isOwn = (name: string) =>
    name.startsWith('node:') ||
    builtinModules.includes(name) ||
    ['coffer/errors', 'node-fetch', '@basis-theory/basis-theory-reactor-formulas-sdk-js'].includes(name)
  const packages = names
    .filter((name) => !isOwn(name))
    .map((name) => (name in ALIASES ? name : (splitRequest(name)?.name ?? '')))
  return [...new Set(packages)].filter((name) => isPackageName(name) || name in ALIASES)
}

/** @throws CofferError `check_failed` if a row is wrong */
async function report(context: CommandContext, rows: readonly Row[]): Promise<void> {
  await printForRun(context, rows)
  const wrong = rows.filter(({ state }) => state === 'wrong')
  if (wrong.length === 0) return
  const names = wrong.map((row) => row.package).join(', ')
  throw new CofferError('check_failed', `These cannot be used: ${names}. The output contains each reason.`)
}
