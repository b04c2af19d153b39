/** `coffer config set`: reads the value, and advises to set the public URL. */
import { isSecretSetting, requireSettingName, type SettingView } from '../../domain/settings.js'
import type { Hooks } from '../task.js'

export const set: Hooks = {
  gather: async (context, [name = '', given]) => {
    const isSecret = isSecretSetting(requireSettingName(name))
    return { name, value: await context.input.readGiven(context, given, name, { isSecret }) }
  },
  run: async ({ input, ask, print, notice }) => {
    await print(await ask())
    if (input.name !== 'mail.url') return
    const { is_set } = (await ask({ name: 'public_url' }, 'config get')) as SettingView
    if (!is_set)
      await notice(
        'Links in mail point to this machine until you set its public URL: coffer config set public_url https://…',
      )
  },
}
