/**
 * Prints completion scripts for shells, and the completions that these scripts request. A failed completion prints
 * nothing. A completion never prompts the user. Coffer prints words without quotes, because the scripts or the shells
 * add quotes.
 */
import { readFileSync } from 'node:fs'
import type { Command, Option } from 'commander'
import { findFixture } from '../../../assets.js'
import { readConfig } from '../../../config.js'
import { usage } from '../../../errors.js'
import type { List } from '../../../framework/page.js'
import { memberOf } from '../../../framework/schema.js'
import { SETTINGS } from '../../../global-flags.js'
import { reachVault } from '../../../vault/open.js'
import { type Args, type CommandContext, TOPIC_NAMES } from '../../context.js'
import { listFlags, takesMany } from '../../input/flags.js'
import { identify } from '../../input/names.js'
import { display } from '../../output/display.js'
import { write } from '../../output/terminal.js'
import { shortFormOf } from '../../short-forms.js'
import { chooseOpener, findKeyFile } from '../../target/opener.js'
import { placeOf } from '../../target/place.js'
import { findTenantChoice } from '../../target/vault.js'
import { readUserSettings } from '../../user-settings.js'
import { applyProfile } from '../profile.js'

const MAX_VALUES = 50

const SHELLS = ['bash', 'fish', 'powershell', 'zsh']

/** @throws CofferError `usage` for an unknown shell */
export async function printCompletion(context: CommandContext, [shell = '', ...words]: Args): Promise<void> {
  const { stdout } = context.terminal
  if (shell === 'words') {
    const found = await complete(context, words as string[]).catch(() => [])
    await write(stdout, found.map((word) => `${word}\n`).join(''))
    return
  }
  if (!SHELLS.includes(shell)) throw usage(`The shell is one of ${SHELLS.join(', ')}.`)
  await write(stdout, readFileSync(findFixture(`completion/${shell}`), 'utf8'))
}

/** Completes the last word, which may be empty. A tab and a description may follow each completion. */
async function complete(context: CommandContext, words: readonly string[]): Promise<string[]> {
  // Bash passes `--flag=text` as the words `--flag`, `=` and `text`, and `--flag=` as `--flag` and `=`.
  const line = [...words, ...(words.at(-1) === '=' ? [''] : [])].filter((word) => word !== '=')
  const current = line.at(-1) ?? ''
  const values = await listCandidates(context, line.slice(0, -1), current)
  return [...new Set(values)].filter((value) => {
    const [word = ''] = value.split('\t')
    return word.startsWith(current) && display(word) === word
  })
}

async function listCandidates(context: CommandContext, before: readonly string[], current: string) {
  const program = context.listCommands()
  const globals = program.options.filter(({ required }) => required)
  const isValue = (at: number) => globals.some((option) => isNamed(option, before[at - 1]))
  const typed = before.filter((word, at) => !word.startsWith('-') && !isValue(at))
  const { command, path, given } = findCommand(program, typed)
  const asked = before.at(-1) ?? ''
  const options = [...command.options, ...program.options]
  const option = options.find((each) => (each.required || each.optional) && isNamed(each, asked))
  if (option !== undefined)
    return option.argChoices ?? listValues(context, before, path, option.long ?? asked, current)
  if (current.startsWith('-'))
    return [
      ...options.flatMap(({ long, hidden, description }) =>
        hidden || !long ? [] : describe(long, description),
      ),
      describe('--help', 'print help'),
    ]
  if (given.length === 0 && command.commands.length > 0) return describeAll(command.commands)
  if (path === 'completion') return SHELLS
  if (path === 'help') return [...TOPIC_NAMES, ...describeAll(findCommand(program, given).command.commands)]
  if (path === 'tenant use') return listValues(context, before, path, '--tenant')
  if (path.startsWith('profile ') && !given[0]) return listValues(context, before, path, '--profile')
  const definition = context.registry.find(path)
  const isMany = definition !== undefined && takesMany(definition)
  const property =
    definition?.positionals[given.length] ?? (isMany ? definition.positionals.at(-1) : undefined)
  return property === undefined ? [] : listValues(context, before, path, property)
}

/** If a shell cannot show descriptions, the script for this shell removes the descriptions. */
const describe = (word: string, text = '') => (text === '' ? word : `${word}\t${text}`)
const describeAll = (commands: readonly Command[]) =>
  commands.map((each) => describe(each.name(), each.description()))

const isNamed = ({ short, long }: Option, word?: string) =>
  word !== undefined && (short === word || long === word)

function findCommand(program: Command, words: readonly string[]) {
  let command = program
  let depth = 0
  for (; ; depth++) {
    const next = command.commands.find((each) => each.name() === words[depth])
    if (next === undefined)
      return { command, path: words.slice(0, depth).join(' '), given: words.slice(depth) }
    command = next
  }
}

async function listValues(
  context: CommandContext,
  before: readonly string[],
  path: string,
  asked: string,
  begun = '',
) {
  if (asked === '--profile') return Object.keys((await readUserSettings(context.config.directory)).profiles)
  const definition = context.registry.find(path)
  // If the command does not have the flag, uses the flag of the noun's `create` command.
  const creator = context.registry.find(`${path.split(' ')[0]} create`)
  const flags = [definition, creator].flatMap((each) => (each === undefined ? [] : listFlags(each)))
  const flag = flags.find(({ name }) => name === asked)
  const schema = flag?.schema ?? definition?.input.properties?.[asked]
  const noun = asked === '--tenant' ? 'tenant' : asked === '--explain-as' ? 'app' : schema?.refersTo
  // Tokens are not offered, because listing them would be logged.
  if (noun === 'token') return []
  if (noun !== undefined) return listNames(context, before, noun)
  if (schema === undefined) return []
  const member = memberOf(schema)
  const form = shortFormOf(member)
  if (form !== undefined) return form.complete(begun)
  const values = 'enum' in member ? member.enum : undefined
  const { suggestions, cli } = member
  return (
    values ?? suggestions ?? Object.entries(cli?.meanings ?? {}).map(([value, text]) => describe(value, text))
  )
}

/**
 * Returns the names and ids of the records of `noun` in the vault that the command line chooses. Fails if this needs a
 * prompt, a read from a descriptor or a wait for another process.
 */
async function listNames(context: CommandContext, before: readonly string[], noun: string) {
  const flags: Record<string, string> = {}
  for (const [name, { word }] of Object.entries(SETTINGS)) {
    const value = before.includes(word) ? before[before.indexOf(word) + 1] : undefined
    if (value !== undefined) flags[name] = value
  }
  const env = await applyProfile(flags, context.env)
  const config = { ...readConfig(flags, env) }
  // Completion does not use these sources: a passphrase command could prompt, and a descriptor can be read only once.
  for (const name of ['passphraseFd', 'passphraseCommand', 'storePasswordFd'] as const) delete config[name]
  const terminal = Object.create(context.terminal, { mayPrompt: { value: false } })
  const quiet: CommandContext = { ...context, env, config, terminal }
  const place = { ...placeOf(quiet), timeoutMs: 0 }
  const vault = await reachVault(place, (locked) => {
    // A key file opens the vault faster than a passphrase.
    const hasKeyFile = locked.slots.includes('key-file') && findKeyFile(quiet, locked.id) !== undefined
    if (hasKeyFile) delete config.passphraseFile
    return chooseOpener(quiet, locked)
  })
  try {
    const key = config.apiKey
    const as = key === undefined ? { reveal: false, tenant: await findTenantChoice(quiet) } : { key }
    const input = noun === 'tenant' ? {} : { size: MAX_VALUES }
    const { result } = await vault.ask({ operation: `${noun} list`, input, as })
    const things = (Array.isArray(result) ? result : (result as List<unknown>).data).map(identify)
    return [...things.flatMap(({ names }) => names), ...things.map(({ id }) => id)]
  } finally {
    await vault.close()
  }
}
