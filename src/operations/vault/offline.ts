/** Operations that need exclusive access to a vault, or that work on one that is not open. For its owner alone. */
import { CofferError } from '../../errors.js'
import { operation } from '../../framework/operation.js'
import { arrayOf, boolean, count, date, enumOf, object, text, texts } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { findings, slotOutput } from './vault.js'

const tally = { type: 'object', additionalProperties: count } as const

export const restoreVault = operation({
  name: 'vault restore',
  audience: 'owner',
  summary: 'Make a vault of a backup, or of what can be read of a damaged vault, here or where --vault says.',
  details:
    'With --salvage the vault in the directory is left as it is. What was lost is counted by kind, and each log says how\n' +
    'many of its records are missing. What the lost changes had replaced or removed may be there again.',
  input: closedInput(['file'], {
    file: {
      type: 'string',
      minLength: 1,
      isPath: true,
      description: 'What vault backup wrote; with --salvage the directory of a vault.',
    },
    salvage: { type: 'boolean', description: 'Take what can be read of a damaged vault.' },
  }),
  positionals: ['file'],
  output: object({
    directory: text,
    'restored_from?': text,
    'salvaged_from?': text,
    'findings?': findings,
    'salvaged?': tally,
    'missing?': tally,
    'links_left_out?': count,
    'applications_without_key?': count,
    'settings_lost?': boolean,
  }),
  examples: [
    'coffer vault restore /safe/place/vault.backup --vault restored',
    'coffer vault restore --salvage .coffer --vault salvaged',
  ],
  runOffline: async ({ vault }, { file, salvage }) =>
    salvage === true ? vault.salvage(file) : vault.restore(file),
})

export const changeKeys = operation({
  name: 'vault rekey',
  audience: 'owner',
  summary: 'Change every key of the vault and seal everything anew.',
  details:
    'Opens afterwards with what opened it for this command; other key slots are dropped and can be added again.\n' +
    'Needs exclusive access to the vault: stop a server first. If it is interrupted, run it again to go on.',
  input: closedInput([], {}),
  output: object({ directory: text, resealed: count, dropped_slots: texts }),
  examples: ['coffer vault rekey'],
  destroys: 'This changes every key and seals everything anew. Older backups keep the old keys.',
  runOffline: async ({ vault, notice, ask }) => {
    const { dropped, ...report } = await vault.rekey()
    for (const { id, kind } of dropped)
      await notice(`The ${kind} slot ${id} was dropped; add it again with: coffer vault keys add`)
    await ask(noteRekey)
    return { ...report, dropped_slots: dropped.map(({ id }) => id) }
  },
})

/** The log record of a change of keys, which happens while no record can be written. */
export const noteRekey = operation({
  name: 'vault note-rekey',
  audience: 'owner',
  scope: 'vault',
  isInternal: true,
  summary: 'Log that every key was changed.',
  input: closedInput([], {}),
  examples: [],
  log: { operation: 'update', message: 'Vault keys changed' },
  run: async () => undefined,
})

const passphraseFile = {
  type: 'string',
  minLength: 1,
  isPath: true,
  description: 'Its first line is the new passphrase.',
} as const

export const changePassphrase = operation({
  name: 'vault passwd',
  audience: 'owner',
  summary: 'Set the passphrase that opens the vault, in place of the one before.',
  input: closedInput([], { new_passphrase_file: passphraseFile }),
  output: arrayOf(slotOutput),
  columns: ['id', 'kind', 'created'],
  examples: ['coffer vault passwd'],
  runOffline: ({ vault }, { new_passphrase_file: file }) =>
    vault.changeSlots({ kind: 'passphrase', file }, (slots, openedBy) => {
      const passphrases = slots.filter(({ kind }) => kind === 'passphrase')
      const opened = passphrases.find(({ id }) => id === openedBy)
      const replaced = opened ?? (passphrases.length === 1 ? passphrases[0] : undefined)
      if (replaced === undefined && passphrases.length > 1)
        throw new CofferError(
          'conflict',
          'The vault has several passphrases and was opened by none of them. Use: coffer vault keys add, then remove.',
        )
      return slots.filter((slot) => slot !== replaced).map(({ id }) => id)
    }),
})

export const manageKeys = operation({
  name: 'vault keys',
  audience: 'owner',
  summary: 'List what opens the vault, add to it, or remove from it.',
  details:
    'coffer vault keys list · add (a key file, or with --passphrase a passphrase) · remove SLOT. One always stays.',
  input: closedInput([], {
    action: { type: 'string', description: 'list, add or remove', default: 'list' },
    slot: { type: 'string', description: 'The slot to remove.' },
    new_key_file: {
      type: 'string',
      minLength: 1,
      isPath: true,
      description: 'Where the new key file goes; one that is there is never overwritten.',
    },
    passphrase: { type: 'boolean', description: 'Add a passphrase instead of a key file.' },
    new_passphrase_file: passphraseFile,
  }),
  positionals: ['action', 'slot'],
  output: arrayOf(slotOutput),
  columns: ['id', 'kind', 'created'],
  examples: [
    'coffer vault keys list',
    'coffer vault keys add --new-key-file second.key',
    'coffer vault keys remove 9a1f2b3c4d',
  ],
  runOffline: async ({ vault, notice }, input) => {
    const { action, slot, new_key_file: keyFile, passphrase, new_passphrase_file: passphraseFile } = input
    if (action === 'list') return vault.listSlots()
    if (action === 'add') {
      const isPassphrase = passphrase === true || passphraseFile !== undefined
      if (!isPassphrase && keyFile === undefined)
        throw new CofferError('usage', 'Say where the key file goes: --new-key-file FILE')
      const added = isPassphrase
        ? ({ kind: 'passphrase', file: passphraseFile } as const)
        : ({ kind: 'key-file', file: keyFile } as const)
      return vault.changeSlots(added, (slots) => slots.map(({ id }) => id))
    }
    if (action !== 'remove')
      throw new CofferError('usage', 'coffer vault keys inputSchema list, add or remove.')
    if (slot === undefined) throw new CofferError('usage', 'Say which slot: coffer vault keys remove SLOT')
    let isInUse = false
    const left = await vault.changeSlots(undefined, (slots, openedBy) => {
      if (!slots.some(({ id }) => id === slot))
        throw new CofferError('not_found', 'There is no such slot. See: coffer vault keys list')
      isInUse = openedBy === slot
      return slots.flatMap(({ id }) => (id === slot ? [] : [id]))
    })
    if (isInUse) await notice('This is the slot that was used just now; use another key from now on.')
    return left
  },
})

export const showHolder = operation({
  name: 'vault lock',
  audience: 'owner',
  summary: 'Tell which process has the vault open.',
  input: closedInput([], {}),
  output: object({
    held: boolean,
    'pid?': count,
    'host?': text,
    'since?': date,
    'state?': enumOf('alive', 'dead', 'unknown'),
  }),
  examples: ['coffer vault lock'],
  runOffline: async ({ vault }) => {
    const holder = vault.holder()
    return holder === undefined ? { held: false } : { held: true, ...holder }
  },
})
