/** The commands of `coffer vault` that keep a vault up, as data; what each does loads when it is run. */
import type { OwnerCommand } from './owner-commands.js'

export const UPKEEP_COMMANDS: readonly OwnerCommand[] = [
  {
    name: 'vault verify',
    summary: 'Look at every byte of the vault and say what is damaged.',
    details: 'Says what can still be read. Exit code 7 when anything is damaged.',
    arguments: [],
    options: [],
    examples: ['coffer vault verify'],
    run: async (desk) => (await import('./upkeep.js')).verify(desk),
  },
  {
    name: 'vault compact',
    summary: 'Flush the write-ahead log and compact the sorted tables.',
    arguments: [],
    options: [],
    examples: ['coffer vault compact'],
    run: async (desk) => (await import('./upkeep.js')).compact(desk),
  },
  {
    name: 'vault backup',
    summary: 'Write the whole vault into one sealed file.',
    details:
      'A server may go on meanwhile. The backup opens with what opens the vault now, whatever is changed later;\n' +
      'what is deleted from the vault later stays in it.',
    arguments: [['<file>', 'a file that does not exist yet']],
    options: [],
    examples: ['coffer vault backup /safe/place/vault.backup'],
    run: async (desk, [file]) => (await import('./upkeep.js')).backup(desk, file!),
  },
  {
    name: 'vault restore',
    summary:
      'Make a vault of a backup, or of what can be read of a damaged vault, here or where --vault says.',
    details:
      'With --salvage the vault in the directory is left as it is. What was lost is counted by kind, and each log says how\n' +
      'many of its records are missing. What the lost changes had replaced or removed may be there again.',
    arguments: [['<file>', 'what vault backup wrote; with --salvage the directory of a vault']],
    options: [['--salvage', 'take what can be read of a damaged vault']],
    examples: [
      'coffer vault restore /safe/place/vault.backup --vault restored',
      'coffer vault restore --salvage .coffer --vault salvaged',
    ],
    run: async (desk, [file], flags) =>
      (await import('./upkeep.js'))[flags.salvage === true ? 'salvage' : 'restore'](desk, file!),
  },
  {
    name: 'vault rekey',
    summary: 'Change every key of the vault and seal everything anew.',
    details:
      'Opens afterwards with what opened it for this command; other key slots are dropped and can be added again.\n' +
      'Needs the vault to itself: stop a server first. If it is interrupted, run it again to go on.',
    arguments: [],
    options: [],
    examples: ['coffer vault rekey'],
    run: async (desk) => (await import('./upkeep.js')).changeKeys(desk),
  },
  {
    name: 'vault passwd',
    summary: 'Set the passphrase that opens the vault, in place of the one before.',
    arguments: [],
    options: [['--new-passphrase-file <file>', 'its first line is the new passphrase']],
    examples: ['coffer vault passwd'],
    run: async (desk, _, flags) => (await import('./key-slots.js')).changePassphrase(desk, flags),
  },
  {
    name: 'vault keys',
    summary: 'List what opens the vault, add to it, or remove from it.',
    details:
      'coffer vault keys list · add (a key file, or with --passphrase a passphrase) · remove SLOT. One always stays.',
    arguments: [
      ['[action]', 'list, add or remove'],
      ['[slot]', 'the slot to remove'],
    ],
    options: [
      ['--new-key-file <file>', 'where the new key file goes; one that is there is never overwritten'],
      ['--passphrase', 'add a passphrase instead of a key file'],
      ['--new-passphrase-file <file>', 'its first line is the new passphrase'],
    ],
    examples: [
      'coffer vault keys list',
      'coffer vault keys add --new-key-file second.key',
      'coffer vault keys remove 9a1f2b3c4d',
    ],
    run: async (desk, [action, slot], flags) =>
      (await import('./key-slots.js')).keys(desk, action ?? 'list', slot, flags),
  },
  {
    name: 'vault lock',
    summary: 'Tell which process has the vault open.',
    arguments: [],
    options: [],
    examples: ['coffer vault lock'],
    run: async (desk) => (await import('./upkeep.js')).showLock(desk),
  },
]
