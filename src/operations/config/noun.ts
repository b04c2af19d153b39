import * as settings from './settings.js'

export const noun = {
  name: 'config',
  summary: 'Change the settings of the vault',
  operations: [settings.listSettings, settings.getSetting, settings.setSetting, settings.unsetSetting],
}
