import { resolve } from 'node:path'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { ReactorOptions } from '../../framework/ports/reactors.js'
import { CORE_DANGER, harden } from '../../vault/app.js'
import type { CommandContext } from '../context.js'
import { printNotice } from '../output/output.js'

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
