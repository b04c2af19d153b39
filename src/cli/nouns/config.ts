import { requireSettingName, type SettingView, VAULT_SETTINGS } from '../../domain/settings.js'
import type { Hooks, Presentations, Task } from '../task.js'

const setSetting: Hooks = {
  gather: async (context, [name = '', given]) => {
    const isSecret = 'conceal' in VAULT_SETTINGS[requireSettingName(name)]
    return { name, value: await context.input.readGiven(context, given, name, { isSecret }) }
  },
  run: async (task) => {
    const { input, ask, print, notice } = task
    if (input.value !== 'true') await confirmReveal(task)
    await print(await ask())
    if (input.name !== 'mail.url') return
    const { is_set } = (await ask({ name: 'public_url' }, 'config get')) as SettingView
    if (!is_set)
      await notice(
        'Links in mail point to this machine until you set its public URL: coffer config set public_url https://…',
      )
  },
}

const unsetSetting: Hooks = {
  run: async (task) => {
    await confirmReveal(task)
    await task.print(await task.ask())
  },
}

async function confirmReveal({ input, context: { terminal } }: Task): Promise<void> {
  if (input.name === 'no_reveal') await (await import('../input/prompt.js')).confirmReveal(terminal)
}

export const presentations: Presentations = {
  'config list': { layout: { wraps: true } },
  'config set': {
    arguments: [
      ['<name>', 'see coffer config list'],
      ['[value]', 'the value; @FILE reads a file, - reads standard input; without a value, a prompt asks'],
    ],
    hooks: setSetting,
  },
  'config unset': { hooks: unsetSetting },
}
