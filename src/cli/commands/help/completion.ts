/**
 * `coffer completion`: scripts for shells, which ask this program at each press of the key, and its answer: words,
 * flags, values of enumerations, and names and ids from the vault. Failures are silent, and nothing is asked.
 */
import { type Config, readConfig } from '../../../config.js'
import { omitUndefined } from '../../../domain/omit-undefined.js'
import { usage } from '../../../errors.js'
import type { OperationInput } from '../../../framework/operation.js'
import type { List } from '../../../framework/page.js'
import type { Registry } from '../../../framework/registry.js'
import { memberOf, type Schema } from '../../../framework/schema.js'
import { ALL_SETTINGS, SETTINGS, type Setting } from '../../../global-flags.js'
import { reachVault } from '../../../vault/open.js'
import type { CommandContext, CommandFacts } from '../../context.js'
import { TOPIC_NAMES } from '../../help-layout.js'
import { identify } from '../../input/names.js'
import { listFlags, takesMany } from '../../input/options.js'
import { display } from '../../output/display.js'
import { write } from '../../output/terminal.js'
import { chooseOpener, placeOf, reachUnlocked } from '../../target/credentials.js'
import { findTenantChoice } from '../../target/tenant-choice.js'
import { readUserSettings } from '../../user-settings.js'
import { applyProfile } from '../profile.js'

const ANSWER = 'coffer completion words --'
const MOST_VALUES = 50
/** Log records in which the newest tokens are looked up. */
const MOST_RECORDS = 500

/** The shells quote what they insert: zsh and fish by themselves. */
const SHELLS: Readonly<Record<string, string>> = {
  bash: `# coffer completion for bash: eval "$(coffer completion bash)"
_coffer() {
  local word words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=()
  while IFS= read -r word; do COMPREPLY+=("$(printf %q "$word")"); done < <(
    ${ANSWER} "\${words[@]//\\\\/}" 2>/dev/null)
}
complete -o default -F _coffer coffer
`,
  zsh: `#compdef coffer
# coffer completion for zsh: eval "$(coffer completion zsh)"
_coffer() {
  local -a found
  found=("\${(@f)$(${ANSWER} "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n $found ]]; then compadd -a found; else _files; fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
compdef _coffer coffer
`,
  fish: `# coffer completion for fish: coffer completion fish | source
function __coffer
  set -l word (commandline -ct)
  set -l found (${ANSWER} (commandline -opc)[2..-1] (string replace -a '\\\\' '' -- "$word") 2>/dev/null)
  if set -q found[1]; printf '%s\\n' $found; else; __fish_complete_path "$word"; end
end
complete -c coffer -f -a '(__coffer)'
`,
}

/** `coffer completion SHELL`, and what its scripts ask. @throws CofferError `usage` for an unknown shell */
export async function printCompletion(
  context: CommandContext,
  [shell = '', ...words]: readonly string[],
): Promise<void> {
  const { stdout } = context.terminal
  if (shell === 'words') {
    const found = await complete(context, words).catch(() => [])
    await write(stdout, found.map((word) => `${word}\n`).join(''))
    return
  }
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined
  if (script === undefined) throw usage(`The shell is one of ${Object.keys(SHELLS).join(', ')}.`)
  await write(stdout, script)
}

/** The words that can replace the last of `words`, which is begun or empty. */
async function complete(context: CommandContext, words: readonly string[]): Promise<string[]> {
  // Bash splits at an equals sign, and what follows it may not be there yet.
  const split = words.at(-1) === '=' ? [...words, ''] : words
  const [current = '', ...reversed] = split.filter((word) => word !== '=').toReversed()
  const before = reversed.toReversed()
  const [, name, begun] = /^(--[a-z-]+)=(.*)$/.exec(current) ?? []
  const asked = name ?? before.at(-1) ?? ''
  const text = begun ?? current
  const commands = context.listCommands()
  const path = commandPath(commands, before)
  const facts = commands.find((each) => each.words.join(' ') === path)
  const options = [...(facts?.options ?? []), ...commands[0]!.options]
  const takesValue = options.some(({ names, hasValue }) => hasValue && names.includes(asked))
  const begin = (values: readonly string[]) =>
    [...new Set(values)].filter((value) => value.startsWith(text) && display(value) === value)
  if (takesValue) {
    const values = begin(await listValues(context, before, path, asked))
    return name === undefined || words.includes('=') ? values : values.map((value) => `${name}=${value}`)
  }
  if (current.startsWith('-')) return begin(facts?.flags ?? [])
  const depth = path === '' ? 0 : path.split(' ').length
  const given = wordsOf(before).length - depth
  const below = commands.filter(
    (each) => each.words.length === depth + 1 && each.words.join(' ').startsWith(path),
  )
  if (below.length > 0 && given === 0) return begin(below.map((each) => each.words[depth]!))
  if (path === 'completion') return begin(Object.keys(SHELLS))
  if (path === 'help') return begin([...TOPIC_NAMES, ...commands.flatMap((each) => each.words[given] ?? [])])
  if (path === 'tenant use') return begin(await listNames(context, before, 'tenant'))
  const definition = context.registry.find(path)
  const isMany = definition !== undefined && takesMany(definition)
  const property = definition?.positionals[given] ?? (isMany ? definition.positionals.at(-1) : undefined)
  return property === undefined ? [] : begin(await listValues(context, before, path, property))
}

/** The longest command that the words begin with, without the global flags among them. */
function commandPath(commands: readonly CommandFacts[], before: readonly string[]): string {
  const words = wordsOf(before)
  const paths = [3, 2, 1].map((count) => words.slice(0, count).join(' '))
  return paths.find((path) => commands.some((each) => each.words.join(' ') === path)) ?? ''
}

/** Without flags, and without the values of global ones. */
function wordsOf(before: readonly string[]): string[] {
  const takesValue = (flag = '') => settingOf(flag)?.flag.includes(' ') === true
  return before.filter((word, at) => !word.startsWith('-') && !takesValue(before[at - 1]))
}

function settingOf(flag: string): Setting | undefined {
  return ALL_SETTINGS.find(({ word }) => word === flag)
}

/** The values of a flag, or of the property of a positional argument. */
async function listValues(
  context: CommandContext,
  before: readonly string[],
  path: string,
  asked: string,
): Promise<readonly string[]> {
  if (asked === '-o') return SETTINGS.output.choices
  if (asked === '--profile') return Object.keys((await readUserSettings(context.config.directory)).profiles)
  if (asked === '--tenant') return listNames(context, before, 'tenant')
  if (asked === '--explain-as') return listNames(context, before, 'app')
  const setting = settingOf(asked)
  if (setting !== undefined) return setting.choices ?? []
  const schema = findSchema(context.registry, path, asked)
  if (schema === undefined) return []
  if (schema.refersTo !== undefined) return listNames(context, before, schema.refersTo)
  if (schema.isTokenId) return withVault(context, before, listRecentTokens)
  const member = memberOf(schema)
  return (
    ('enum' in member ? member.enum : undefined) ?? member.suggestions ?? Object.keys(member.meanings ?? {})
  )
}

function findSchema(registry: Registry, path: string, asked: string): Schema | undefined {
  const definition = registry.find(path)
  if (definition === undefined) return undefined
  const { properties = {} } = definition.input
  return listFlags(definition).find(({ name }) => name === asked)?.schema ?? properties[asked]
}

type Ask = (operation: string, input: OperationInput) => Promise<unknown>

function listNames(
  context: CommandContext,
  before: readonly string[],
  noun: string,
): Promise<readonly string[]> {
  return withVault(context, before, async (ask) => {
    const result = await ask(`${noun} list`, noun === 'tenant' ? {} : { size: MOST_VALUES })
    const things = (Array.isArray(result) ? result : (result as List<unknown>).data).map(identify)
    return [...things.flatMap(({ names }) => names), ...things.map(({ id }) => id)]
  })
}

/** From the log, because a list of tokens would be logged as a read of each. */
async function listRecentTokens(ask: Ask): Promise<readonly string[]> {
  const { data } = (await ask('log list', { entity_type: 'token', size: MOST_RECORDS })) as List<{
    entity_id: string
    operation: string
  }>
  const newest = new Map<string, string>()
  for (const { entity_id, operation } of data) if (!newest.has(entity_id)) newest.set(entity_id, operation)
  const kept = [...newest].filter(([, operation]) => operation !== 'delete')
  return kept.map(([id]) => id).slice(0, MOST_VALUES)
}

/** The items of a list. Fails if the list needs a passphrase, a descriptor, or waiting for another process. */
async function withVault(
  context: CommandContext,
  before: readonly string[],
  list: (ask: Ask) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const flags: Record<string, string> = {}
  for (const [name, { word }] of Object.entries(SETTINGS)) {
    const at = before.indexOf(word)
    if (at >= 0 && before[at + 1] !== undefined) flags[name] = before[at + 1]!
  }
  const env = await applyProfile(flags, context.env)
  const given = readConfig(flags, env)
  const config = omitUndefined({
    ...given,
    passphraseFile: undefined,
    passphraseFd: undefined,
    passphraseCommand: undefined,
    storePasswordFd: undefined,
  }) as Config
  const terminal = Object.create(context.terminal, { mayPrompt: { value: false } })
  const quiet: CommandContext = { ...context, env, config, terminal }
  const place = { ...placeOf(quiet), patienceMs: 0 }
  const vault =
    (await reachUnlocked(quiet)) ?? (await reachVault(place, (locked) => chooseOpener(quiet, locked)))
  try {
    const key = config.apiKey
    const as = key === undefined ? { reveal: false, tenant: await findTenantChoice(quiet) } : { key }
    return await list(async (operation, input) => (await vault.ask({ operation, input, as })).result)
  } finally {
    await vault.close()
  }
}
