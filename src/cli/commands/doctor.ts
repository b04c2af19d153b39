import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { SettingView } from '../../domain/settings.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import { CofferError, usage } from '../../errors.js'
import type { Sandbox } from '../../framework/ports/reactors.js'
import type { OperationName, ResultOf } from '../../operations/all.js'
import { harden } from '../../vault/app.js'
import { readHolder } from '../../vault/offline.js'
import { identifyVault } from '../../vault/open.js'
import type { CommandContext } from '../context.js'
import { countOf } from '../output/display.js'
import { printForRun } from '../output/output.js'
import { findKeyFile } from '../target/opener.js'
import { findVaultDirectory, NEEDS_VAULT, placeOf, requireVault } from '../target/place.js'
import { askOwned } from '../target/vault.js'
import { userSettingsPath } from '../user-settings.js'

/** The oldest supported version of Node, as in package.json. */
const MIN_NODE = '20.19'
const OTHERS_MAY = 0o077

const EXPECTED: readonly (keyof Sandbox)[] = [
  'network_namespace',
  'process_namespace',
  'user_namespace',
  'no_new_descriptors',
  'ends_with_host',
]

/** `warning`: Coffer works, but something could be better. */
type Verdict = readonly [state: 'ok' | 'warning' | 'wrong', found: string, advice?: string]
const CHECKS: Record<string, (context: CommandContext) => Promise<Verdict>> = {
  node: async ({ nodeVersion }) => {
    const isOld = nodeVersion.slice(1).localeCompare(MIN_NODE, 'en', { numeric: true }) < 0
    if (!isOld) return ['ok', `Node ${nodeVersion}`]
    return ['wrong', `Node ${nodeVersion} is too old.`, `Install Node ${MIN_NODE} or newer.`]
  },

  permissions: async (context) => {
    requireVault(context)
    const directory = findVaultDirectory(context)
    const key = findKeyFile(context, await identifyVault(placeOf(context)).catch(() => ''))
    const isDirectory = context.config.store === undefined
    const names = isDirectory ? ['', ...readdirSync(directory, { recursive: true })] : []
    const others = [userSettingsPath(context.config.directory), ...(key === undefined ? [] : [key])]
    const open = [...names.map((name) => join(directory, String(name))), ...others].filter(
      (path) => ((lstatSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS_MAY) !== 0,
    )
    const [first] = open
    if (first === undefined) return ['ok', 'Only you can read the vault, its key and your settings.']
    const more = open.length === 1 ? '' : ` and ${open.length - 1} more`
    const change = first.startsWith(directory) ? `-R go= ${quoteWord(directory)}` : `go= ${quoteWord(first)}`
    return ['wrong', `Other users may read ${first}${more}.`, `Run: chmod ${change}`]
  },

  lock: async (context) => {
    if (context.config.store !== undefined)
      return ['ok', 'The vault is in a store. Any number of processes may have it open.']
    const place = placeOf(context)
    const { pid, host, since, state } = readHolder(place) ?? {}
    if (state === undefined) return ['ok', 'No process has the vault open.']
    if (state === 'dead')
      return ['ok', 'A process that had the vault open was killed. The next command removes its lock.']
    const who = `process ${pid} on ${host} since ${since}`
    if (state === 'alive') return ['ok', `The vault is open in ${who}. Commands connect to this process.`]
    const advice = `If the process has ended: rm ${join(place.directory, 'lock')}`
    return [
      'wrong',
      `The lock is held by ${who}. This machine cannot tell whether that process still runs.`,
      advice,
    ]
  },

  vault: async (context) => {
    const { tokens } = await ask(context, 'vault status')
    return ['ok', `The vault opens, and has ${countOf(tokens, 'token')}.`]
  },

  no_reveal: async (context) => {
    const settings = (await ask(context, 'config list')) as SettingView[]
    const isSet = settings.some(({ name, value }) => name === 'no_reveal' && value === true)
    const by = [
      ...(isSet ? ['the setting no_reveal'] : []),
      ...(context.config.noReveal ? ['the flag, variable or profile'] : []),
    ]
    if (by.length === 0) return ['ok', 'No-reveal mode is off: --reveal shows data.']
    return ['ok', `No-reveal mode is on, by ${by.join(' and by ')}: no command shows data or new keys.`]
  },

  chain: async (context) => {
    const { is_whole, records } = await ask(context, 'log verify')
    if (is_whole) return ['ok', `The log is intact: ${countOf(records, 'record')}.`]
    return ['wrong', 'The log was changed, or records are missing.', 'Run: coffer log verify']
  },

  dumps: async ({ pid, env }) => {
    const { isCoreLimited } = await harden({ pid, path: env.PATH })
    if (isCoreLimited === true) return ['ok', 'A crash of a server writes no memory to a core dump.']
    return [
      'warning',
      'A crash of a server may write its memory, including keys, to a core dump.',
      'Before you start a server, run: ulimit -c 0',
    ]
  },

  sandbox: async (context) => {
    const { reactor_sandbox } = await ask(context, 'vault status')
    return judgeSandbox(reactor_sandbox as Sandbox)
  },
}

/** Warns only if a measure that every Linux supports is missing. */
export function judgeSandbox(sandbox: Sandbox): Verdict {
  const list = (names: readonly string[]) => names.map((name) => name.replaceAll('_', ' ')).join(', ')
  const names = Object.keys(sandbox) as (keyof Sandbox)[]
  const gaps = EXPECTED.filter((name) => !sandbox[name])
  const active = list(names.filter((name) => sandbox[name] === true))
  const missing = list(names.filter((name) => sandbox[name] === false && !gaps.includes(name)))
  const confined = `Reactor code is confined by: ${active}.${missing && ` Not available: ${missing}.`}`
  if (gaps.length === 0) return ['ok', confined]
  const advice = 'On Linux, install util-linux and allow user namespaces: see docs/reactors.md.'
  return ['warning', `Reactor code is not confined by: ${list(gaps)}. ${confined}`, advice]
}

const ask = <Name extends OperationName>(context: CommandContext, operation: Name) =>
  askOwned(context, operation) as Promise<ResultOf<Name>>

/** @throws CofferError `check_failed` if a check failed */
export async function examine(context: CommandContext): Promise<void> {
  if (context.config.url !== undefined) throw usage(`coffer doctor ${NEEDS_VAULT}`)
  const findings: { check: string; state: Verdict[0]; found: string; advice?: string }[] = []
  for (const [name, run] of Object.entries(CHECKS)) {
    let check = name
    const [state, found, advice] = await run(context).catch((error: unknown): Verdict => {
      if (!(error instanceof CofferError) || error.code === 'interrupted') throw error
      if (error.code === 'vault_missing') check = 'vault'
      return ['wrong', error.message]
    })
    findings.push({ check, state, found, ...(advice === undefined ? {} : { advice }) })
    // If the vault is missing, locked or cannot be opened, the other checks are impossible.
    if (state === 'wrong' && (check === 'lock' || check === 'vault')) break
  }
  const advised = findings.some(({ advice }) => advice !== undefined) ? ['advice'] : []
  await printForRun(context, findings, { columns: ['check', 'state', 'found', ...advised], wraps: true })
  const failed = findings.filter(({ state }) => state === 'wrong')
  if (failed.length === 0) return
  throw new CofferError('check_failed', `Checks that failed: ${failed.length} of ${findings.length}.`, {
    // A table may cut long results, so the error repeats these results.
    errors: Object.fromEntries(
      failed.map(({ check, found, advice = '' }) => [check, [`${found} ${advice}`.trim()]]),
    ),
  })
}
