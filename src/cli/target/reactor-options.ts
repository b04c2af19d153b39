/** Reactor code on this machine: the options of its runtime, and messages about its confinement. */
import { resolve } from 'node:path'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { ReactorOptions, Sandbox } from '../../framework/ports/reactors.js'
import { CORE_DANGER, harden } from '../../vault/app.js'
import type { CommandContext } from '../context.js'
import { printNotice } from '../output/output.js'

/** Measures that every Linux supports. */
const EXPECTED: readonly (keyof Sandbox)[] = [
  'network_namespace',
  'process_namespace',
  'user_namespace',
  'no_new_descriptors',
  'ends_with_host',
]

const join = (names: readonly string[]) => names.map((name) => name.replaceAll('_', ' ')).join(', ')

/** One line: the active and the inactive measures. */
export function describeConfinement(sandbox: Sandbox): string {
  const names = Object.keys(sandbox) as (keyof Sandbox)[]
  const missing = join(names.filter((name) => sandbox[name] === false))
  const active = join(names.filter((name) => sandbox[name] === true))
  return `Reactor code is confined by: ${active}.${missing === '' ? '' : ` Not available: ${missing}.`}`
}

/** Advice about missing measures; undefined if all expected ones are active. */
export function describeConfinementGaps(sandbox: Sandbox): string | undefined {
  const missing = join(EXPECTED.filter((name) => !sandbox[name]))
  if (missing === '') return undefined
  return `Reactor code is not confined by: ${missing}. On Linux, install util-linux and allow user namespaces; the README says how.`
}

/** The hosts, modules and authorities that the flags of this run give to reactor code and proxies. */
export async function reactorOptions({ config, input, cwd }: CommandContext): Promise<ReactorOptions> {
  const { allowNet, modules, ca: file } = config
  const ca = file === undefined ? undefined : await input.readFile(file, '--ca')
  return omitUndefined({ ca, allowNet, modulesDirectory: modules && resolve(cwd, modules) })
}

/** Hardens this process, which will have a vault open. Resolves to the options of reactors when that is done. */
export async function hardenHost(context: CommandContext) {
  const { pid, env, terminal } = context
  const options = await reactorOptions(context)
  const confinement = await harden({ pid, path: env.PATH }, options.modulesDirectory)
  if (confinement.isCoreLimited !== true) await printNotice(terminal, CORE_DANGER)
  return { ...options, confinement }
}
