/** The settings of the vault, which its owner reads and changes; what each may be stands in `domain/settings`. */
import { about } from '../../domain/property-errors.js'
import type { SettingsRecord } from '../../domain/records.js'
import { requireSettingName, type SettingView, showSetting, VAULT_SETTINGS } from '../../domain/settings.js'
import { CofferError } from '../../errors.js'
import type { Store, StoreReader } from '../../storage/store.js'

/** Every setting, whether it was set or not. */
export async function listSettings(store: Store): Promise<SettingView[]> {
  const { values } = await store.read(readSettings)
  return Object.keys(VAULT_SETTINGS).map((name) => showSetting(requireSettingName(name), values))
}

/** @throws CofferError `usage` for a name that is none */
export async function getSetting(store: Store, name: string): Promise<SettingView> {
  const known = requireSettingName(name)
  return showSetting(known, (await store.read(readSettings)).values)
}

/**
 * Sets what `text` spells, or, without it, unsets.
 * @throws CofferError `usage` for a name that is none, `validation` for a value that may not be
 */
export async function setSetting(store: Store, name: string, text: string | undefined): Promise<SettingView> {
  const known = requireSettingName(name)
  const value = text === undefined ? undefined : about(known, () => VAULT_SETTINGS[known].read(text))
  return store.write(async (writer) => {
    const settings = await readSettings(writer)
    const { [known]: _, ...others } = settings.values
    const values = value === undefined ? others : { ...others, [known]: value }
    await writer.replace('settings', 0, { ...settings, values })
    return showSetting(known, values)
  })
}

async function readSettings(reader: StoreReader): Promise<SettingsRecord> {
  const settings = await reader.get('settings', 0, 'vault')
  if (settings !== undefined) return settings
  throw new CofferError('vault_damaged', 'The settings of the vault are missing. Run: coffer vault verify')
}
