import * as offline from './offline.js'
import * as vault from './vault.js'

export const noun = {
  name: 'vault',
  summary: 'Maintain the vault: verify, back up, restore, change keys',
  operations: [
    vault.describeVault,
    vault.verifyVault,
    vault.compactVault,
    vault.backUpVault,
    offline.restoreVault,
    offline.copyVault,
    offline.changeKeys,
    offline.changePassphrase,
    offline.manageKeys,
    vault.replaceHeader,
    offline.recordRekey,
  ],
}
