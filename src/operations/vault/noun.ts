/** Operations on an open vault. Only the owner of the vault is allowed to use these operations. */
import { owner, wholeVault } from '../../framework/declaration.js'
import { detached } from '../../framework/operation.js'
import { anyJson, boolean, count, object, text, uuid } from '../../framework/output.js'
import { holderOutput, type VaultHeader, vaultFacts, verification } from '../../framework/ports/vault.js'
import { closedInput, pathOf } from '../../framework/schema.js'
import * as offline from './offline.js'

const describeVault = detached({
  name: 'vault status',
  access: owner,
  summary: 'Show the location, key slots and contents of the vault.',
  output: object({
    'directory?': text,
    'store?': text,
    'held_by?': holderOutput,
    ...vaultFacts,
    tenant: object({ id: uuid, name: text, owner_id: uuid }),
    tokens: count,
    logs: count,
    reactor_sandbox: anyJson('Each measure that confines reactor code, and whether it is active.'),
  }),
  examples: ['coffer vault status'],
  run: async (session) => {
    const vault = session.vault()
    const holds = await session.inUnit(async ({ store, caller, tenant }) => {
      const count = async (kind: 'token' | 'log') =>
        (await store.find(kind, caller.tenant, { page: 1, size: 1 })).total
      const { id, name, owner_id } = await tenant()
      return { tenant: { id, name, owner_id }, tokens: await count('token'), logs: await count('log') }
    })
    return { ...(await vault.maintenance().describe()), ...holds, reactor_sandbox: await vault.sandbox() }
  },
})

const verifyVault = detached({
  access: wholeVault,
  name: 'vault verify',
  summary: 'Verify all data of the vault and list what is damaged.',
  details:
    'Also counts the readable rows. The exit code is 7 if anything is damaged. Replaced and deleted rows are not read.',
  output: object({ ok: boolean, ...verification }),
  examples: ['coffer vault verify'],
  run: async (session) => verdict(await session.vault().maintenance().verify()),
  // This function runs if the vault is too damaged to open.
  whenDamaged: async ({ vault }) => verdict(await vault.verify()),
})

function verdict<V extends { findings: readonly unknown[] }>(verification: V): { ok: boolean } & V {
  return { ok: verification.findings.length === 0, ...verification }
}

const compactVault = detached({
  access: wholeVault,
  name: 'vault compact',
  summary: 'Flush the write-ahead log and compact until nothing is due.',
  details:
    'Also purges expired tokens. The vault then trusts the clock of this machine, so check the clock first.',
  examples: ['coffer vault compact'],
  run: async (session) => {
    await session.inUnit(async ({ store }) => store.storeTime({ isTrusted: true }))
    const vault = session.vault()
    while ((await vault.sweep()) > 0);
    await vault.examineContainers()
    await vault.maintenance().compact()
    return undefined
  },
})

const backUpVault = detached({
  access: wholeVault,
  name: 'vault backup',
  summary: 'Write the whole vault into one sealed file.',
  details:
    'A server may keep running. The current key slots of the vault open the backup, even if you change the key slots later.\n' +
    'Data that you delete from the vault later stays in the backup.',
  input: closedInput(['file'], { file: pathOf('The path of a new file.') }),
  output: object({ file: text, bytes: count }),
  cli: { positionals: ['file'] },
  examples: ['coffer vault backup vault.backup'],
  run: async ({ vault }, { file }) => ({ file, bytes: await vault().maintenance().backup(file) }),
})

/** A command that changes key slots calls this operation. `replaces`: the `mac` of the header before the change. */
const replaceHeader = detached({
  access: wholeVault,
  name: 'vault replace-header',
  summary: 'Replace the header of the vault.',
  input: closedInput(['header', 'replaces'], {
    header: { type: 'object', additionalProperties: true },
    replaces: { type: 'string' },
  }),
  cli: { isInternal: true },
  examples: [],
  log: { operation: 'update', message: 'Vault key slots changed' },
  run: async (session, { header, replaces }) => {
    const maintenance = session.vault().maintenance()
    await maintenance.replaceHeader(header as VaultHeader, replaces)
    return undefined
  },
})

export const noun = {
  name: 'vault',
  summary: 'Maintain the vault: verify, back up, restore, change keys',
  operations: [
    describeVault,
    verifyVault,
    compactVault,
    backUpVault,
    offline.restoreVault,
    offline.copyVault,
    offline.changeKeys,
    offline.changePassphrase,
    offline.manageKeys,
    replaceHeader,
    offline.recordRekey,
  ],
}
