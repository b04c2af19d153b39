/**
 * Operations that need exclusive access to a vault, or that run before the vault is opened. Only the owner of the
 * vault is allowed to use these operations.
 */
import { describeLostTenants } from '../../domain/records/lost-tenants.js'
import { CofferError, conflict, usage } from '../../errors.js'
import { owner, wholeVault } from '../../framework/declaration.js'
import { change, offline } from '../../framework/operation.js'
import { arrayOf } from '../../framework/output.js'
import {
  copiedOutput,
  rekeyedOutput,
  restoredOutput,
  type SlotFacts,
  slotOutput,
} from '../../framework/ports/vault.js'
import { closedInput, pathOf } from '../../framework/schema.js'

export const restoreVault = offline({
  name: 'vault restore',
  access: owner,
  summary: 'Create a vault at --vault or --store from a backup.',
  input: closedInput(['file'], { file: pathOf('A backup.') }),
  output: restoredOutput,
  cli: { positionals: ['file'] },
  examples: [
    'coffer vault backup vault.backup && coffer vault restore vault.backup --vault restored --key-file .coffer-demo/vault.key',
  ],
  run: async ({ vault }, { file }) => vault.restore(file),
})

export const copyVault = offline({
  name: 'vault copy',
  access: owner,
  summary: 'Copy the vault to another directory or store.',
  details:
    'Ids, logs, keys and key slots stay the same. A vault in a directory must not be open elsewhere. A vault in a store is\n' +
    'copied as it is when the copy begins. The copied rows are read again, counted, and compared with a digest of the\n' +
    'original rows. After an interruption, run the command again: it starts from the beginning. After the copy, use only one\n' +
    'of the two vaults, because a change in one vault does not change the other.\n' +
    'With --skip-damaged, rows that cannot be read are left out and counted by kind. Each log starts a new chain with\n' +
    'the readable records and a record about the copy. Data may reappear if the change that replaced or removed it is lost.\n' +
    'If the keys of a tenant are lost, all its rows are left out. If no tenant can be read, nothing is copied (exit code 7).',
  input: closedInput(['to'], {
    to: {
      type: 'string',
      minLength: 1,
      description: 'A directory, or postgres://USER@HOST/DATABASE, without a vault.',
    },
    to_password_file: pathOf('The password of the user in --to is the first line of this file.'),
    skip_damaged: {
      type: 'boolean',
      description: 'Copy what can be read of a damaged vault, to a directory.',
    },
  }),
  output: copiedOutput,
  examples: ['coffer vault copy --to copied', 'coffer vault copy --skip-damaged --to recovered'],
  run: async ({ vault, notice }, { to, to_password_file: passwordFile, skip_damaged }) => {
    const copied = await vault.copy(to, { passwordFile, skipsDamaged: skip_damaged === true })
    if (copied.skipped !== undefined) {
      const { findings = [], skipped, lost_tenants = [] } = copied
      if (lost_tenants.length > 0) await notice(describeLostTenants(lost_tenants))
      const lost = Object.values(skipped).reduce((sum, count) => sum + count, 0)
      const rows = lost === 1 ? '1 row was' : `${lost} rows were`
      const left = lost === 0 && findings.length === 0 ? 'Nothing was left out' : `${rows} left out`
      await notice(`${left}. The damaged vault was not changed: keep it until you have checked the new one.`)
    } else await notice('Both vaults open with the same keys. Use only one of the two vaults from now on.')
    return copied
  },
})

export const changeKeys = offline({
  name: 'vault rekey',
  access: owner,
  summary: 'Change every key of the vault and encrypt all data again.',
  details:
    'The key file or passphrase of this command still opens the vault afterwards. All other key slots are dropped, and you can\n' +
    'add them again. The command needs exclusive access to the vault, so stop the server first. After an interruption, run the\n' +
    'command again. With PostgreSQL, the servers answer 503 as soon as the command begins. Restart the servers afterwards.',
  output: rekeyedOutput,
  cli: {
    confirmation: 'This changes every key and encrypts all data again. Older backups keep the old keys.',
  },
  examples: ['coffer vault rekey --yes'],
  run: async ({ vault, notice, ask }) => {
    const { dropped, ...report } = await vault.rekey()
    for (const { id, kind } of dropped) {
      const flag = kind === 'passphrase' ? '--passphrase' : `--new-key-file ${id}.key`
      await notice(`The ${kind} slot ${id} was dropped. To add one again: coffer vault keys add ${flag}`)
    }
    await ask(recordRekey)
    return { ...report, dropped_slots: dropped.map(({ id }) => id) }
  },
})

/** A rekey is logged after its end, because no record can be written during a rekey. */
export const recordRekey = change({
  access: wholeVault,
  name: 'vault note-rekey',
  summary: 'Log that every key was changed.',
  cli: { isInternal: true },
  examples: [],
  log: { operation: 'update', message: 'Vault keys changed' },
  run: async () => undefined,
})

const passphraseFile = pathOf('A file whose first line is the new passphrase.')

export const changePassphrase = offline({
  name: 'vault passwd',
  access: owner,
  summary: 'Change the passphrase that opens the vault, or add a passphrase.',
  input: closedInput([], { new_passphrase_file: passphraseFile }),
  output: arrayOf(slotOutput),
  examples: [
    '(umask 77; echo a long passphrase > new.txt) && coffer vault passwd --new-passphrase-file new.txt',
  ],
  run: async ({ vault, notice }, { new_passphrase_file: file }) => {
    let kept: readonly SlotFacts[] = []
    const slots = await vault.changeSlots({ kind: 'passphrase', file }, (slots, openedBy) => {
      const passphrases = slots.filter(({ kind }) => kind === 'passphrase')
      const opened = passphrases.find(({ id }) => id === openedBy)
      const replaced = opened ?? (passphrases.length === 1 ? passphrases[0] : undefined)
      if (replaced === undefined && passphrases.length > 1)
        throw conflict(
          'The vault has several passphrases. Add the new one: coffer vault keys add --passphrase. ' +
            'Then remove the old one: coffer vault keys remove SLOT',
        )
      kept = slots.filter((slot) => slot !== replaced)
      return kept.map(({ id }) => id)
    })
    if (kept.length > 0) {
      const names = kept.map(({ id, kind }) => `${kind} ${id}`).join(', ')
      await notice(
        `These keys still open the vault too: ${names}. To remove one: coffer vault keys remove SLOT`,
      )
    }
    return slots
  },
})

const AFTER_REMOVAL =
  'Somebody who has kept the removed key and an older vault.json or backup can still read the files: only ' +
  '`coffer vault rekey` locks them out of the vault.'

export const manageKeys = offline({
  name: 'vault keys',
  access: owner,
  summary: 'List, add or remove the keys and passphrases that open the vault.',
  details:
    'The action is list, add (a key file, or with --passphrase a passphrase) or remove SLOT. The last slot cannot be\n' +
    'removed. Before a removal, the command asks for confirmation, unless --yes is given. Somebody who has kept the removed\n' +
    'key and an older vault.json or backup can still read the files. To lock them out of the vault: coffer vault rekey.',
  input: closedInput([], {
    action: { type: 'string', description: 'list, add or remove', default: 'list' },
    slot: { type: 'string', description: 'The slot to remove.' },
    new_key_file: pathOf('The path of the new key file; an existing file is not overwritten.'),
    passphrase: { type: 'boolean', description: 'Add a passphrase instead of a key file.' },
    new_passphrase_file: passphraseFile,
  }),
  output: arrayOf(slotOutput),
  cli: { positionals: ['action', 'slot'] },
  examples: [
    'coffer vault keys list',
    'coffer vault keys add --new-key-file second.key',
    'coffer vault keys add --new-key-file second.key && coffer vault keys remove --yes "$(coffer vault keys list -o id | tail -n 1)"',
  ],
  run: async ({ vault, notice, confirm }, input) => {
    const { action, slot, new_key_file: keyFile, passphrase, new_passphrase_file: passphraseFile } = input
    if (action === 'list') return vault.listSlots()
    if (action === 'add') {
      const isPassphrase = passphrase === true || passphraseFile !== undefined
      if (!isPassphrase && keyFile === undefined)
        throw usage('Give the path of the new key file: --new-key-file FILE')
      const added = isPassphrase
        ? ({ kind: 'passphrase', file: passphraseFile } as const)
        : ({ kind: 'key-file', file: keyFile } as const)
      return vault.changeSlots(added, (slots) => slots.map(({ id }) => id))
    }
    if (action !== 'remove') throw usage('coffer vault keys takes list, add or remove.')
    if (slot === undefined) throw usage('Give the slot: coffer vault keys remove SLOT')
    return vault.changeSlots(undefined, async (slots, openedBy) => {
      const removed = slots.find(({ id }) => id === slot)
      if (removed === undefined)
        throw new CofferError('not_found', 'There is no slot with this id. See: coffer vault keys list')
      if (slots.length > 1) {
        const isInUse = openedBy === slot
        const use = isInUse
          ? `This command opens the vault with slot ${slot}, so use another key from now on.`
          : `This command opens the vault with slot ${openedBy}.`
        await notice(`${use} ${AFTER_REMOVAL}`)
        await confirm(`Remove the ${removed.kind} slot ${slot}${isInUse ? ', which is in use' : ''}?`)
      }
      return slots.flatMap(({ id }) => (id === slot ? [] : [id]))
    })
  },
})
