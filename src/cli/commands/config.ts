/** `coffer config set`: where the value comes from, and advice. */
import { isSecretSetting, requireSettingName, type SettingView } from '../../domain/settings.js'
import type { CommandContext } from '../context/context.js'
import type { Steps } from '../context/task.js'
import { readAnswer } from '../input/input.js'
import { printNotice, printWarning } from '../output/output.js'

export const set: Steps = {
  gather: async (context, [name = '', given]) => {
    requireSettingName(name)
    return { name, value: await readValue(context, name, given) }
  },
  run: async ({ context, input, ask, print }) => {
    await print(await ask())
    if (input.name !== 'mail.url') return
    const { is_set } = (await ask({ name: 'public_url' }, 'config get')) as SettingView
    // Links in mail that lead to this machine are of no use to anybody else.
    if (!is_set)
      await printNotice(
        context.terminal,
        'Links in mail lead to this machine until you say where others reach it: coffer config set public_url https://…',
      )
  },
}

/** A value that was not given is asked for, or comes on standard input. */
async function readValue(
  { input, terminal }: CommandContext,
  name: string,
  given: string | undefined,
): Promise<string> {
  const isSecret = isSecretSetting(requireSettingName(name))
  if (given === undefined && terminal.mayPrompt) {
    const { ask } = await import('../input/prompt.js')
    const answer = await ask(terminal, { message: name, missing: 'the value', sensitive: isSecret })
    return readAnswer(input, answer, name)
  }
  const isExposed = isSecret && given !== undefined && given !== '-' && !/^@(?!@)/.test(given)
  if (isExposed)
    await printWarning(
      terminal,
      `Other processes can see the arguments of a command. Give ${name} as @FILE, or on standard input.`,
    )
  return input.readValue(given ?? '-', name)
}
