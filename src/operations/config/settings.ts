/** The settings of the vault, which its owner reads and changes; what each may be stands in `domain/settings`. */
import { about } from '../../domain/property-errors.js'
import type { SettingsRecord } from '../../domain/records.js'
import { requireSettingName, type SettingView, showSetting, VAULT_SETTINGS } from '../../domain/settings.js'
import { CofferError } from '../../errors.js'
import { type Context, operation } from '../../framework/operation.js'
import { anyJson, arrayOf, boolean, object, text } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import type { StoreReader } from '../../storage/store.js'

const settingOutput = object({
  name: text,
  'value?': anyJson('Concealed where it is secret.'),
  is_set: boolean,
  description: text,
})
const columns = ['name', 'value', 'is_set', 'description']
const name = { type: 'string', description: 'See coffer config list.' } as const

export const listSettings = operation({
  name: 'config list',
  audience: 'owner',
  scope: 'vault',
  summary: 'List the settings of the vault.',
  input: closedInput([], {}),
  output: arrayOf(settingOutput),
  columns,
  examples: ['coffer config list'],
  run: async ({ store }) => {
    const { values } = await readSettings(store)
    return Object.keys(VAULT_SETTINGS).map((each) => showSetting(requireSettingName(each), values))
  },
})

export const getSetting = operation({
  name: 'config get',
  audience: 'owner',
  scope: 'vault',
  summary: 'Show one setting of the vault.',
  input: closedInput(['name'], { name }),
  positionals: ['name'],
  output: settingOutput,
  columns,
  examples: ['coffer config get mail.from'],
  check: ({ name: given }) => requireSettingName(String(given)),
  run: async ({ store }, _, known) => showSetting(known, (await readSettings(store)).values),
})

export const setSetting = operation({
  name: 'config set',
  audience: 'owner',
  scope: 'vault',
  summary: 'Change a setting of the vault.',
  details: 'A value with a password in it is best asked for, or given as @FILE or on standard input.',
  input: closedInput(['name', 'value'], {
    name,
    value: {
      type: 'string',
      description: 'Left out, it is asked for; @FILE is what the file holds, - is standard input.',
    },
  }),
  positionals: ['name', 'value'],
  output: settingOutput,
  columns,
  examples: [
    'coffer config set public_url https://vault.example.com',
    'coffer config set mail.url < url.txt',
  ],
  log: { operation: 'update', message: 'Vault setting changed' },
  check: ({ name: given, value: text }) => {
    const known = requireSettingName(String(given))
    return { known, value: about(known, () => VAULT_SETTINGS[known].read(String(text))) }
  },
  run: (context, _, { known, value }) => changeSetting(context, known, value),
})

export const unsetSetting = operation({
  name: 'config unset',
  audience: 'owner',
  scope: 'vault',
  summary: 'Forget a setting of the vault, so that its default counts again.',
  input: closedInput(['name'], { name }),
  positionals: ['name'],
  output: settingOutput,
  columns,
  examples: ['coffer config unset mail.url'],
  log: { operation: 'update', message: 'Vault setting changed' },
  check: ({ name: given }) => requireSettingName(String(given)),
  run: (context, _, known) => changeSetting(context, known, undefined),
})

async function changeSetting(
  { store }: Context,
  known: ReturnType<typeof requireSettingName>,
  value: unknown,
): Promise<SettingView> {
  const settings = await readSettings(store)
  const { [known]: _, ...others } = settings.values
  const values = value === undefined ? others : { ...others, [known]: value }
  await store.replace('settings', 0, { ...settings, values })
  return showSetting(known, values)
}

async function readSettings(reader: StoreReader): Promise<SettingsRecord> {
  const settings = await reader.get('settings', 0, 'vault')
  if (settings !== undefined) return settings
  throw new CofferError('vault_damaged', 'The settings of the vault are missing. Run: coffer vault verify')
}
