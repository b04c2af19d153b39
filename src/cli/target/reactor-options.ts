/** Reactor code on this machine: the options of its runtime, and messages about its confinement. */
import { resolve } from 'node:path'
import type { ReactorOptions, Sandbox } from '../../framework/ports/reactors.js'
import { CORE_DANGER, harden } from '../../vault/hardening.js'
import type { CommandContext } from '../context.js'
import { printNotice } from '../output/output.js'

/** Measures that every Linux supports. */
const EXPECTED = [
  'network_namespace',
  'process_namespace',
  'user_namespace',
  'no_new_descriptors',
  'ends_with_host',
] as const satisfies readonly (keyof Sandbox)[]

/** One line: the active and the inactive measures. */
export function describeConfinement(sandbox: Sandbox): string {
  const list = (isInForce: boolean) =>
    Object.entries(sandbox)
      .filter(([, value]) => value === isInForce)
      .map(([name]) => name.replaceAll('_', ' '))
      .join(', ')
  const missing = list(false)
  return `Reactor code is confined by: ${list(true)}.${missing === '' ? '' : ` Not available: ${missing}.`}`
}

/** Advice about missing measures; undefined if all expected ones are active. */
export function describeConfinementGaps(sandbox: Sandbox): string | undefined {
  const missing = EXPECTED.filter((name) => !sandbox[name]).map((name) => name.replaceAll('_', ' '))
  if (missing.length === 0) return undefined
  return `Reactor code is not confined by: ${missing.join(', ')}. On Linux, install util-linux and allow user namespaces; the README says how.`
}

/** The hosts, modules and authorities that the flags of this run give to reactor code and proxies. */
export async function reactorOptions({ config, input, cwd }: CommandContext): Promise<ReactorOptions> {
  const { allowNet, modules, ca } = config
  return {
    ...(ca === undefined ? {} : { ca: await input.readFile(ca, '--ca') }),
    ...(allowNet === undefined ? {} : { allowNet }),
    ...(modules === undefined ? {} : { modulesDirectory: resolve(cwd, modules) }),
  }
}

/** Hardens this process, which will have a vault open. Resolves to the options of reactors when that is done. */
export async function hardenHost(context: CommandContext) {
  const { pid, env, terminal } = context
  const options = await reactorOptions(context)
  const confinement = await harden({ pid, path: env.PATH }, options.modulesDirectory)
  if (confinement.isCoreLimited !== true) await printNotice(terminal, CORE_DANGER)
  return { ...options, confinement }
}
