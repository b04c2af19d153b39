/** The record of the vault's settings. */
import type { SettingsRecord } from '../../domain/records/records.js'
import { damaged } from '../../errors.js'
import type { StoreReader } from '../../storage/store.js'

/** @throws CofferError `vault_damaged` */
export async function readSettings(reader: Pick<StoreReader, 'get'>): Promise<SettingsRecord> {
  const settings = await reader.get('settings', 0, 'vault')
  if (settings !== undefined) return settings
  throw damaged('The settings of the vault are missing')
}
