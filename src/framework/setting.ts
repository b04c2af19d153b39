import { type SettingName, type SettingValue, settingOf } from '../domain/settings.js'
import type { StoreReader } from '../storage/store.js'

export async function readSetting<N extends SettingName>(
  reader: Pick<StoreReader, 'get'>,
  name: N,
): Promise<SettingValue<N>> {
  const { values = {} } = (await reader.get('settings', 0, 'vault')) ?? {}
  return settingOf(values, name)
}
