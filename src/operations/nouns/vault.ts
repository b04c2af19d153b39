import * as offline from '../vault/offline.js'
import * as vault from '../vault/vault.js'

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
    vault.readHeader,
    vault.replaceHeader,
    offline.noteRekey,
  ],
}
