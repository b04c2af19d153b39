/** `coffer config …`: the settings of the vault. What each may be is decided elsewhere. */
import { isSecretSetting, requireSettingName, type SettingView } from '../../domain/settings.js'
import type { Desk } from '../context.js'
import { readAnswer } from '../input/input.js'
import { chooseFormat, printNotice, printResult, printWarning } from '../output/output.js'

const COLUMNS = ['name', 'value', 'is_set', 'description']

export async function listSettings(desk: Desk): Promise<void> {
  await print(desk, await command<SettingView[]>(desk, 'config list', {}))
}

/** @throws CofferError `usage` for a name that is none */
export async function showSetting(desk: Desk, name: string): Promise<void> {
  await print(desk, await command<SettingView>(desk, 'config get', { name }))
}

/** @throws CofferError `usage` for a name that is none, `validation` for a value that may not be */
export async function setSetting(desk: Desk, name: string, given: string | undefined): Promise<void> {
  requireSettingName(name)
  const text = await readValue(desk, name, given)
  await print(desk, await command<SettingView>(desk, 'config set', { name, text }))
  if (name === 'mail.url') await adviseOnMail(desk)
}

/** @throws CofferError `usage` for a name that is none */
export async function unsetSetting(desk: Desk, name: string): Promise<void> {
  await print(desk, await command<SettingView>(desk, 'config unset', { name }))
}

/** A value that was not given is asked for, or comes on standard input. */
async function readValue(
  { input, terminal }: Desk,
  name: string,
  given: string | undefined,
): Promise<string> {
  const isSecret = isSecretSetting(requireSettingName(name))
  if (given === undefined && terminal.mayPrompt) {
    const { ask } = await import('../input/prompt.js')
    const answer = await ask(terminal, { message: name, missing: 'the value', sensitive: isSecret })
    return readAnswer(input, answer, name)
  }
  const isExposed = isSecret && given !== undefined && given !== '-' && !/^@(?!@)/.test(given)
  if (isExposed)
    await printWarning(
      terminal,
      `Other processes can see the arguments of a command. Give ${name} as @FILE, or on standard input.`,
    )
  return input.readValue(given ?? '-', name)
}

/** Links in mail that lead to this machine are of no use to anybody else. */
async function adviseOnMail(desk: Desk): Promise<void> {
  const { is_set } = await command<SettingView>(desk, 'config get', { name: 'public_url' })
  if (is_set) return
  await printNotice(
    desk.terminal,
    'Links in mail lead to this machine until you say where others reach it: coffer config set public_url https://…',
  )
}

function command<T>(desk: Desk, name: string, input: Record<string, unknown>): Promise<T> {
  return desk.reachVault((vault) => vault.command(name, input)) as Promise<T>
}

async function print({ terminal, config }: Desk, result: unknown): Promise<void> {
  await printResult(terminal, result, {
    format: chooseFormat(terminal, config.output),
    columns: COLUMNS,
    fields: config.fields,
    known: ['value'],
  })
}
