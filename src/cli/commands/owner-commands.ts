/**
 * Commands that are no operations, as data: they are for who can unlock the vault. `program` makes commands of them;
 * what each does loads when it is run.
 */
import type { Desk } from '../context.js'
import { REACTOR_COMMANDS } from './reactor-commands.js'
import { UPKEEP_COMMANDS } from './upkeep-commands.js'

export interface OwnerCommand {
  /** `noun verb`. */
  name: string
  summary: string
  /** What follows the words, as commander spells it: `<id>` or `[id]`, with what it is. */
  arguments: readonly (readonly [name: string, description: string])[]
  options: readonly (readonly [flag: string, description: string, isRepeatable?: true])[]
  examples: readonly string[]
  details?: string
  run(
    desk: Desk,
    words: readonly (string | undefined)[],
    flags: Readonly<Record<string, unknown>>,
  ): Promise<void>
}

export const OWNER_COMMANDS: readonly OwnerCommand[] = [
  ...UPKEEP_COMMANDS,
  ...REACTOR_COMMANDS,
  {
    name: 'invite outbox',
    summary: 'List the mail that was written, or read one.',
    details:
      'Without a mail server, mail stays here. Once a mail is sent, or its link ended, the link is kept nowhere.',
    arguments: [['[id]', 'the mail, or its invitation']],
    options: [
      ['--page <number>', 'which page, from 1'],
      ['--size <number>', 'mails on a page, at most 100'],
    ],
    examples: ['coffer invite outbox', 'coffer invite outbox 9a1f…'],
    run: async (desk, [id], flags) => (await import('./invite.js')).showOutbox(desk, id, flags),
  },
  {
    name: 'invite accept',
    summary: 'Accept an invitation, as the person who was invited would.',
    arguments: [['[link]', 'the link in the mail, or its token; - is standard input']],
    options: [
      ['--first-name <text>', 'what they are called'],
      ['--last-name <text>', 'what their family is called'],
    ],
    examples: ['coffer invite accept http://localhost:4010/invitations/accept?token=…'],
    run: async (desk, [link], flags) => (await import('./invite.js')).acceptInvitation(desk, link, flags),
  },
  {
    name: 'tenant create',
    summary: 'Create another tenant in the vault.',
    arguments: [['<name>', 'what people call it']],
    options: [],
    examples: ['coffer tenant create staging'],
    run: async (desk, [name]) => (await import('./tenant.js')).createTenant(desk, name!),
  },
  {
    name: 'tenant list',
    summary: 'List the tenants of the vault, newest first.',
    arguments: [],
    options: [],
    examples: ['coffer tenant list'],
    run: async (desk) => (await import('./tenant.js')).listTenants(desk),
  },
  {
    name: 'tenant use',
    summary: 'Choose the tenant that commands act in from now on.',
    details:
      'The choice is kept for this vault, in your own configuration. --tenant and COFFER_TENANT go before it.',
    arguments: [['<name>', 'its name or id']],
    options: [],
    examples: ['coffer tenant use default'],
    run: async (desk, [name]) => (await import('./tenant.js')).useTenant(desk, name!),
  },
  {
    name: 'log tail',
    summary: 'Show the newest records, oldest first, and follow.',
    arguments: [],
    options: [
      ['-n, --number <count>', 'how many; 20 unless said'],
      ['-f, --follow', 'go on with every record that comes, until Ctrl-C'],
    ],
    examples: ['coffer log tail -n 50', 'coffer log tail -f'],
    run: async (desk, _, flags) => (await import('./log.js')).tailLog(desk, flags),
  },
  {
    name: 'log verify',
    summary: 'Prove that no record was changed, dropped, put in or moved.',
    details: 'Reads the whole log of the tenant; a server that has the vault open answers nobody meanwhile.',
    arguments: [],
    options: [],
    examples: ['coffer log verify'],
    run: async (desk) => (await import('./log.js')).verifyLog(desk),
  },
  {
    name: 'profile set',
    summary: 'Set a setting of a profile; the profile is made if it is not there.',
    details:
      'A profile holds what flags and variables could say, api-key included, and counts only where they say nothing.',
    arguments: [
      ['<profile>', 'its name'],
      ['<setting>', 'the name of a flag without dashes, or api-key'],
      ['[value]', 'left out, it is asked for; @FILE is what the file holds, - is standard input'],
    ],
    options: [],
    examples: [
      'coffer profile set support vault ~/vaults/support',
      'coffer profile set support api-key < key.txt',
    ],
    run: async (desk, [profile, setting, value]) =>
      (await import('./profile.js')).setInProfile(desk, profile!, setting!, value),
  },
  {
    name: 'profile list',
    summary: 'List your profiles and what they hold.',
    arguments: [],
    options: [],
    examples: ['coffer profile list'],
    run: async (desk) => (await import('./profile.js')).listProfiles(desk),
  },
  {
    name: 'profile use',
    summary: 'Choose the profile that counts from now on, or none.',
    arguments: [['[profile]', 'its name; left out, no profile counts']],
    options: [],
    examples: ['coffer profile use support', 'coffer profile use'],
    run: async (desk, [name]) => (await import('./profile.js')).useProfile(desk, name),
  },
  {
    name: 'profile delete',
    summary: 'Delete a profile.',
    arguments: [['<profile>', 'its name']],
    options: [],
    examples: ['coffer profile delete support'],
    run: async (desk, [name]) => (await import('./profile.js')).deleteProfile(desk, name!),
  },
  {
    name: 'config list',
    summary: 'List the settings of the vault.',
    arguments: [],
    options: [],
    examples: ['coffer config list'],
    run: async (desk) => (await import('./config.js')).listSettings(desk),
  },
  {
    name: 'config get',
    summary: 'Show one setting of the vault.',
    arguments: [['<name>', 'see coffer config list']],
    options: [],
    examples: ['coffer config get mail.from'],
    run: async (desk, [name]) => (await import('./config.js')).showSetting(desk, name!),
  },
  {
    name: 'config set',
    summary: 'Change a setting of the vault.',
    details: 'A value with a password in it is best asked for, or given as @FILE or on standard input.',
    arguments: [
      ['<name>', 'see coffer config list'],
      ['[value]', 'left out, it is asked for; @FILE is what the file holds, - is standard input'],
    ],
    options: [],
    examples: [
      'coffer config set public_url https://vault.example.com',
      'coffer config set mail.url < url.txt',
    ],
    run: async (desk, [name, value]) => (await import('./config.js')).setSetting(desk, name!, value),
  },
  {
    name: 'config unset',
    summary: 'Forget a setting of the vault, so that its default counts again.',
    arguments: [['<name>', 'see coffer config list']],
    options: [],
    examples: ['coffer config unset mail.url'],
    run: async (desk, [name]) => (await import('./config.js')).unsetSetting(desk, name!),
  },
]
