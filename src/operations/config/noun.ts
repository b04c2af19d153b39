import { omitUndefined } from '../../domain/omit-undefined.js'
import { about } from '../../domain/property-errors.js'
import { requireSettingName, type SettingView, showSetting, VAULT_SETTINGS } from '../../domain/settings.js'
import type { Context } from '../../framework/context.js'
import { wholeVault } from '../../framework/declaration.js'
import { change, query } from '../../framework/operation.js'
import { anyJson, arrayOf, boolean, object, text } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { readSettings } from '../tenant/tenant-create.js'

const settingOutput = object({
  name: text,
  'value?': anyJson('A secret is concealed.'),
  is_set: boolean,
  description: text,
})
const names = Object.keys(VAULT_SETTINGS)
const name = { type: 'string', suggestions: names, description: 'See coffer config list.' } as const

const ofOneSetting = {
  access: wholeVault,
  input: closedInput(['name'], { name }),
  cli: { positionals: ['name'] },
  output: settingOutput,
  check: ({ name: given }: { name?: string | undefined }) => requireSettingName(String(given)),
} as const

export const listSettings = query({
  access: wholeVault,
  name: 'config list',
  summary: 'List the settings of the vault, with values and descriptions.',
  details: 'Change a setting: coffer config set NAME VALUE.',
  output: arrayOf(settingOutput),
  cli: { columns: ['name', 'value', 'is_set', 'description'] },
  examples: ['coffer config list'],
  run: async ({ store }) => {
    const { values } = await readSettings(store)
    return names.map((each) => showSetting(requireSettingName(each), values))
  },
})

export const getSetting = query({
  ...ofOneSetting,
  name: 'config get',
  summary: 'Show one setting of the vault.',
  examples: ['coffer config get mail.from'],
  run: async ({ store }, _, known) => showSetting(known, (await readSettings(store)).values),
})

export const setSetting = change({
  access: wholeVault,
  name: 'config set',
  summary: 'Change a setting of the vault.',
  details: 'For a value that contains a password, use the prompt, @FILE or standard input.',
  input: closedInput(['name', 'value'], {
    name,
    value: {
      type: 'string',
      description: 'The value; @FILE reads a file, - reads standard input; without a value, a prompt asks.',
    },
  }),
  output: settingOutput,
  cli: { positionals: ['name', 'value'] },
  examples: [
    'coffer config set public_url https://vault.example.com',
    'echo smtps://user:password@mail.example.com | coffer config set mail.url',
  ],
  log: { operation: 'update', message: 'Vault setting changed' },
  check: ({ name: given, value: text }) => {
    const known = requireSettingName(String(given))
    return { known, value: about(known, () => VAULT_SETTINGS[known].read(String(text))) }
  },
  run: (context, _, { known, value }) => changeSetting(context, known, value),
})

export const unsetSetting = change({
  ...ofOneSetting,
  name: 'config unset',
  summary: 'Reset a setting of the vault to its default.',
  examples: ['coffer config unset mail.url'],
  log: { operation: 'update', message: 'Vault setting changed' },
  run: (context, _, known) => changeSetting(context, known, undefined),
})

type SettingName = ReturnType<typeof requireSettingName>

async function changeSetting({ store }: Context, known: SettingName, value: unknown): Promise<SettingView> {
  const settings = await readSettings(store)
  const values: Record<string, unknown> = omitUndefined({ ...settings.values, [known]: value })
  await store.replace('settings', 0, { ...settings, values })
  return showSetting(known, values)
}

export const noun = {
  name: 'config',
  summary: 'Change the settings of the vault',
  operations: [listSettings, getSetting, setSetting, unsetSetting],
}
