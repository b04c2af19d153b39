/**
 * `coffer completion`: scripts for shells, which ask this program at each press of the key, and its answer: words,
 * flags, values of enumerations, and names and ids from the vault. Failures are silent, and nothing is asked.
 */
import { readConfig } from '../../../config.js'
import { usage } from '../../../errors.js'
import type { OperationInput } from '../../../framework/operation.js'
import type { List } from '../../../framework/page.js'
import { memberOf } from '../../../framework/schema.js'
import { ALL_SETTINGS, SETTINGS } from '../../../global-flags.js'
import { reachVault } from '../../../vault/open.js'
import { type CommandContext, TOPIC_NAMES } from '../../context.js'
import { identify } from '../../input/names.js'
import { listFlags, takesMany } from '../../input/options.js'
import { display } from '../../output/display.js'
import { write } from '../../output/terminal.js'
import { chooseOpener, findTenantChoice, placeOf, reachUnlocked } from '../../target/credentials.js'
import type { Args } from '../../task.js'
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
export async function printCompletion(context: CommandContext, [shell = '', ...words]: Args): Promise<void> {
  const { stdout } = context.terminal
  if (shell === 'words') {
    const found = await complete(context, words as string[]).catch(() => [])
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
  const line = [...words, ...(words.at(-1) === '=' ? [''] : [])].filter((word) => word !== '=')
  const current = line.at(-1) ?? ''
  const values = await listCandidates(context, line.slice(0, -1), current)
  return [...new Set(values)].filter((value) => value.startsWith(current) && display(value) === value)
}

async function listCandidates(
  context: CommandContext,
  before: readonly string[],
  current: string,
): Promise<readonly string[]> {
  const commands = context.listCommands()
  const typed = wordsOf(before)
  const find = (depth: number) =>
    commands.find(({ words }) => words.length === depth && words.every((word, at) => word === typed[at]))
  const { words, options, flags } = find(3) ?? find(2) ?? find(1) ?? commands[0]!
  const path = words.join(' ')
  const given = typed.length - words.length
  const asked = before.at(-1) ?? ''
  if ([...options, ...commands[0]!.options].some(({ names, hasValue }) => hasValue && names.includes(asked)))
    return listValues(context, before, path, asked)
  if (current.startsWith('-')) return flags
  const below = commands.filter((each) => each.words.length === words.length + 1)
  const verbs = below.filter((each) => words.every((word, at) => word === each.words[at]))
  if (verbs.length > 0 && given === 0) return verbs.map((each) => each.words.at(-1)!)
  if (path === 'completion') return Object.keys(SHELLS)
  if (path === 'help') return [...TOPIC_NAMES, ...commands.flatMap((each) => each.words[given] ?? [])]
  if (path === 'tenant use') return listValues(context, before, path, '--tenant')
  const definition = context.registry.find(path)
  const isMany = definition !== undefined && takesMany(definition)
  const property = definition?.positionals[given] ?? (isMany ? definition.positionals.at(-1) : undefined)
  return property === undefined ? [] : listValues(context, before, path, property)
}

/** Without flags, and without the values of global ones. */
function wordsOf(before: readonly string[]): string[] {
  const takesValue = (flag?: string) =>
    ALL_SETTINGS.some((setting) => setting.word === flag && setting.flag.includes(' '))
  return before.filter((word, at) => !word.startsWith('-') && !takesValue(before[at - 1]))
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
  const setting = ALL_SETTINGS.find(({ word }) => word === asked)
  const definition = context.registry.find(path)
  const flag = definition && listFlags(definition).find(({ name }) => name === asked)
  const schema = flag?.schema ?? definition?.input.properties?.[asked]
  const noun = asked === '--tenant' ? 'tenant' : asked === '--explain-as' ? 'app' : schema?.refersTo
  if (noun !== undefined) return askVault(context, before, (ask) => listNames(ask, noun))
  if (setting !== undefined) return setting.choices ?? []
  if (schema === undefined) return []
  if (schema.isTokenId) return askVault(context, before, listRecentTokens)
  const member = memberOf(schema)
  const values = 'enum' in member ? member.enum : undefined
  return values ?? member.suggestions ?? Object.keys(member.meanings ?? {})
}

type Ask = (operation: string, input: OperationInput) => Promise<unknown>

async function listNames(ask: Ask, noun: string): Promise<readonly string[]> {
  const result = await ask(`${noun} list`, noun === 'tenant' ? {} : { size: MOST_VALUES })
  const things = (Array.isArray(result) ? result : (result as List<unknown>).data).map(identify)
  return [...things.flatMap(({ names }) => names), ...things.map(({ id }) => id)]
}

/** From the log, because a list of tokens would be logged as a read of each. */
async function listRecentTokens(ask: Ask): Promise<readonly string[]> {
  const { data } = (await ask('log list', { entity_type: 'token', size: MOST_RECORDS })) as List<
    Record<'entity_id' | 'operation', string>
  >
  // The newest record of each, which comes first.
  const newest = new Map(data.toReversed().map(({ entity_id, operation }) => [entity_id, operation]))
  const ids = [...new Set(data.map(({ entity_id }) => entity_id))]
  return ids.filter((id) => newest.get(id) !== 'delete').slice(0, MOST_VALUES)
}

/** Asks the vault that the line names. Fails if it needs a passphrase, a descriptor, or waiting for another process. */
async function askVault(
  context: CommandContext,
  before: readonly string[],
  list: (ask: Ask) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const flags: Record<string, string> = {}
  for (const [name, { word }] of Object.entries(SETTINGS)) {
    const value = before.includes(word) ? before[before.indexOf(word) + 1] : undefined
    if (value !== undefined) flags[name] = value
  }
  const env = await applyProfile(flags, context.env)
  const config = readConfig(flags, env)
  for (const name of ['passphraseFile', 'passphraseFd', 'passphraseCommand', 'storePasswordFd'] as const)
    delete config[name]
  const terminal = Object.create(context.terminal, { mayPrompt: { value: false } })
  const quiet: CommandContext = { ...context, env, config, terminal }
  const vault =
    (await reachUnlocked(quiet)) ??
    (await reachVault({ ...placeOf(quiet), patienceMs: 0 }, (locked) => chooseOpener(quiet, locked)))
  try {
    const key = config.apiKey
    const as = key === undefined ? { reveal: false, tenant: await findTenantChoice(quiet) } : { key }
    return await list(async (operation, input) => (await vault.ask({ operation, input, as })).result)
  } finally {
    await vault.close()
  }
}
