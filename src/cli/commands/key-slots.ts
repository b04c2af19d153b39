/** `coffer vault passwd` and `coffer vault keys`: what opens the vault. */
import { resolve } from 'node:path'
import { CofferError } from '../../errors.js'
import { changeKeySlots, type SlotChange } from '../../vault/key-slots.js'
import type { NewOpener } from '../../vault/open.js'
import type { Desk } from '../context.js'
import { chooseOpener, findVaultDirectory, placeOf } from '../credentials.js'
import { chooseFormat, printNotice, printResult } from '../output/output.js'
import { askNewPassphrase, saveKeyFile } from './vault.js'

type Flags = Readonly<Record<string, unknown>>

/** A passphrase in place of the one that opened the vault, or the only one there is; else one more. */
export async function changePassphrase(desk: Desk, flags: Flags): Promise<void> {
  const opener = await readNewPassphrase(desk, flags)
  await change(desk, async ({ slots, openedBy, add }) => {
    const passphrases = slots.filter(({ kind }) => kind === 'passphrase')
    const old =
      openedBy.kind === 'passphrase' ? openedBy : passphrases.length === 1 ? passphrases[0] : undefined
    if (old === undefined && passphrases.length > 1) {
      throw new CofferError(
        'conflict',
        'The vault has several passphrases and was opened by none of them. Use: coffer vault keys add, then remove.',
      )
    }
    return [...slots.filter((slot) => slot !== old), await add(opener)]
  })
}

/** `list`, `add` or `remove`. @throws CofferError `usage`, `not_found`, `conflict` for the last slot */
export async function keys(
  desk: Desk,
  action: string,
  slot: string | undefined,
  flags: Flags,
): Promise<void> {
  if (action === 'list') return listSlots(desk)
  if (action === 'add') return addSlot(desk, flags)
  if (action !== 'remove') throw new CofferError('usage', 'coffer vault keys takes list, add or remove.')
  if (slot === undefined) throw new CofferError('usage', 'Say which slot: coffer vault keys remove SLOT')
  await change(desk, async ({ slots, openedBy }) => {
    if (!slots.some(({ id }) => id === slot)) {
      throw new CofferError('not_found', 'There is no such slot. See: coffer vault keys list')
    }
    if (openedBy.id === slot && slots.length > 1) {
      await printNotice(
        desk.terminal,
        'This is the slot that was used just now; use another key from now on.',
      )
    }
    return slots.filter(({ id }) => id !== slot)
  })
}

async function listSlots(desk: Desk): Promise<void> {
  const status = (await desk.reachVault((vault) => vault.command('vault status', {}))) as {
    key_slots: unknown[]
  }
  await print(desk, status.key_slots)
}

async function addSlot(desk: Desk, flags: Flags): Promise<void> {
  const wantsPassphrase = flags.passphrase === true || typeof flags.newPassphraseFile === 'string'
  const opener = wantsPassphrase ? await readNewPassphrase(desk, flags) : newKeyFile(desk, flags)
  await change(desk, async ({ slots, add }) => [...slots, await add(opener)])
}

function newKeyFile({ cwd, terminal }: Desk, { newKeyFile: path }: Flags): NewOpener {
  if (typeof path !== 'string')
    throw new CofferError('usage', 'Say where the key file goes: --new-key-file FILE')
  return {
    kind: 'key-file',
    save: async (_, text) => {
      await saveKeyFile(resolve(cwd, path), text)
      await printNotice(terminal, `The new key file is ${resolve(cwd, path)}.`)
    },
  }
}

async function readNewPassphrase(desk: Desk, { newPassphraseFile: path }: Flags): Promise<NewOpener> {
  const passphrase =
    typeof path === 'string'
      ? await desk.input.readSecretFile(resolve(desk.cwd, path), '--new-passphrase-file')
      : await askNewPassphrase(desk, '--new-passphrase-file')
  return { kind: 'passphrase', passphrase }
}

async function change(
  desk: Desk,
  work: (change: SlotChange) => ReturnType<Parameters<typeof changeKeySlots>[2]>,
): Promise<void> {
  // Asked for before anything is changed, so that a vault that is not there is said at once.
  findVaultDirectory(desk)
  const slots = await changeKeySlots(placeOf(desk), (vault) => chooseOpener(desk, vault), work)
  await print(desk, slots)
}

async function print({ terminal, config }: Desk, result: unknown): Promise<void> {
  const columns = ['id', 'kind', 'created']
  await printResult(terminal, result, {
    format: chooseFormat(terminal, config.output),
    columns,
    fields: config.fields,
  })
}
