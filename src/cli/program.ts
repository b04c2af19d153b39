/**
 * The tree of commands, derived from the registry, and the few commands that are about the vault itself. It decides
 * what is typed where; what a command then does stands in files of its own, loaded when it is run.
 */
import { Command, CommanderError, type Help, Option } from 'commander'
import { SETTINGS, type Setting } from '../config.js'
import { CofferError } from '../errors.js'
import type { RegisteredOperation, Registry } from '../framework/registry.js'
import { VERSION } from '../version.js'
import { describeOperation, describeOwnerCommand, TOPICS } from './commands/help.js'
import { OWNER_COMMANDS } from './commands/owner-commands.js'
import { OPENAPI_FLAGS, SERVE_EXAMPLES, SERVE_FLAGS } from './commands/serve-flags.js'
import type { Desk } from './context.js'
import { addFlags, listFlags, spellBooleans, takesBody } from './input/options.js'

/** Help is folded while this much is left for the text beside an option. */
const LEAST_TEXT_COLUMNS = 20

/** What a parsed command line asks for; run once the settings are known. */
export type Task = (desk: Desk) => Promise<void>

export interface ParsedLine {
  flags: Record<string, unknown>
  task: Task
}

/** Nouns without operations. */
const NOUNS = {
  vault: 'Look after the vault itself',
  config: 'Change the settings of the vault',
  profile: 'Keep settings of yours under a name',
}

/**
 * Parses `argv` (without node and script). undefined: it asked for help or the version, which is in `text`.
 * @throws CofferError `usage`
 */
export function parseLine(
  argv: readonly string[],
  registry: Registry,
  columns: number,
): ParsedLine | { text: string } {
  let text = ''
  let parsed: ParsedLine | undefined
  const program = buildProgram(registry, argv, (flags, task) => {
    parsed = { flags, task }
  })
  configureOutput(program, columns, (chunk) => {
    text += chunk
  })
  try {
    program.parse(spellBooleans(argv, registry.operations), { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    const isHelp = error.exitCode === 0 || error.code === 'commander.help'
    if (isHelp) return { text }
    throw new CofferError('usage', cleanMessage(text || error.message), { cause: error })
  }
  return parsed ?? { text }
}

/** One command as a shell's completion sees it. */
export interface CommandFacts {
  words: readonly string[]
  summary: string
  /** Long flags, those of the program included. */
  flags: readonly string[]
}

/** Every command there is, the program itself first, as `words: []`. */
export function listCommands(registry: Registry): CommandFacts[] {
  const nouns = registry.nouns.map(({ name }) => name)
  const program = buildProgram(registry, nouns, () => {})
  const globals = longFlags(program)
  const walk = (command: Command, words: readonly string[]): CommandFacts[] => {
    const flags = [...new Set([...longFlags(command), '--help', ...globals])]
    const facts = { words, summary: command.description(), flags }
    return [facts, ...command.commands.flatMap((child) => walk(child, [...words, child.name()]))]
  }
  return walk(program, [])
}

function longFlags(command: Command): string[] {
  return command.options.filter(({ hidden }) => !hidden).flatMap(({ long }) => long ?? [])
}

type Accept = (flags: Record<string, unknown>, task: Task) => void

function buildProgram(registry: Registry, argv: readonly string[], accept: Accept): Command {
  const program = new Command('coffer')
  program
    .description('A token vault in your terminal, and a drop-in local server of the same interface.')
    .version(VERSION, '--version', 'print the version')
    .helpOption('--help', 'print help for a command')
    .helpCommand(false)
    .configureHelp({ formatHelp: layOutHelp, minWidthToWrap: LEAST_TEXT_COLUMNS })
    .showSuggestionAfterError(true)
    .addHelpText('after', `\n${TOPICS}`)
  // Commander copies these to every command made below.
  program.exitOverride()
  // Options of the program are understood anywhere on the line.
  addGlobalFlags(program)
  for (const { name, summary } of registry.nouns) {
    const group = addGroup(program, name, summary)
    // Only the noun that is asked for gets its verbs: building all of them is most of what `--help` would cost.
    if (!argv.includes(name)) continue
    for (const definition of registry.operations) {
      if (definition.noun === name) addOperation(group, definition, accept)
    }
    addOwnerCommands(group, name, accept)
  }
  addVaultCommands(program, accept)
  for (const noun of ['config', 'profile'] as const)
    addOwnerCommands(addGroup(program, noun, NOUNS[noun]), noun, accept)
  addServerCommands(program, accept)
  return program
}

function addGroup(program: Command, noun: string, summary: string): Command {
  const group = program
    .command(noun)
    .description(summary)
    .helpOption('--help', 'print help')
    .helpCommand(false)
  return group.usage('<command> [options]')
}

function addOperation(group: Command, definition: RegisteredOperation, accept: Accept): void {
  const command = addCommand(group, definition.verb, definition.summary)
  const { positionals: names } = definition
  for (const name of names) command.argument(`<${name.replaceAll('_', '-')}>`)
  addFlags(command, definition)
  if (takesBody(definition))
    command.option('--file <file>', 'the whole body as JSON; - is standard input; flags override it')
  // What was just written is answered masked, to everybody.
  const { log } = definition
  if (definition.isRevealable && log?.operation === 'read')
    command.option('--reveal', 'show data in the clear')
  if (listFlags(definition).some(({ property }) => property === 'page')) command.option('--all', 'all pages')
  if (definition.isExplainable) {
    command.option('--explain', 'say what would be answered and which rule decides; do nothing')
    command.option('--explain-as <app-id>', 'the same, as if this application asked')
  }
  command.addHelpText('after', () => `\n${describeOperation(definition)}`)
  command.action((...given: unknown[]) => {
    const positionals = given.slice(0, names.length) as string[]
    const flags = command.optsWithGlobals()
    accept(flags, async (desk) => {
      const { runOperation } = await import('./run.js')
      await runOperation(desk, definition, positionals, flags)
    })
  })
}

/** Commands of the owner that are no operations, among those of the same noun. */
function addOwnerCommands(group: Command, noun: string, accept: Accept): void {
  for (const definition of OWNER_COMMANDS.filter(({ name }) => name.startsWith(`${noun} `))) {
    const command = addCommand(group, definition.name.split(' ')[1]!, definition.summary)
    for (const [name, description] of definition.arguments) command.argument(name, description)
    for (const [flag, description, isRepeatable] of definition.options)
      if (isRepeatable)
        command.option(flag, description, (text, before?: string[]) => [...(before ?? []), text])
      else command.option(flag, description)
    command.addHelpText('after', () => `\n${describeOwnerCommand(definition)}`)
    finish(command, accept, (flags, words) => (desk) => definition.run(desk, words, flags))
  }
}

/** `init`, `vault …`, `demo`, `help` and `completion`: about the vault and the tool, not about what it holds. */
function addVaultCommands(program: Command, accept: Accept): void {
  const vault = addGroup(program, 'vault', NOUNS.vault)
  for (const parent of [program, vault]) {
    const init = addCommand(parent, 'init', 'Create an encrypted vault here, or where --vault says')
    init.option('--name <text>', 'the name of its first tenant')
    init.option('--passphrase', 'open it with a passphrase instead of a key file')
    init.option('--starter-apps', 'create an application of each type, and show their keys this once')
    finish(
      init,
      accept,
      (flags) => async (desk) => (await import('./commands/vault.js')).initVault(desk, flags),
    )
  }
  const status = addCommand(vault, 'status', 'Show where the vault is, what opens it, and what it holds')
  finish(status, accept, () => async (desk) => (await import('./commands/vault.js')).showStatus(desk))
  addOwnerCommands(vault, 'vault', accept)

  const demo = addCommand(program, 'demo', 'Show the main job on a throw-away vault')
  finish(demo, accept, () => async (desk) => (await import('./commands/demo.js')).runDemo(desk))

  const completion = addCommand(program, 'completion', 'Print a completion script for your shell')
  completion.argument('<shell>', 'bash, zsh or fish')
  finish(completion, accept, (_, [shell = '']) => async (desk) => {
    await (await import('./commands/completion.js')).printCompletion(desk, shell)
  })

  const help = addCommand(program, 'help', 'Print help for a command or a topic')
  help.argument('[words...]', 'a command, or one of: exit-codes, environment, expressions')
  finish(
    help,
    accept,
    (_, words) => async (desk) => (await import('./commands/help.js')).printHelp(desk, words.flat()),
  )
}

/** `serve` and `openapi`: the same operations over HTTP, and the document that describes them. */
function addServerCommands(program: Command, accept: Accept): void {
  const serve = addCommand(program, 'serve', 'Answer the same operations over HTTP')
  for (const [flag, description] of SERVE_FLAGS) serve.option(flag, description)
  serve.addHelpText('after', `\n${SERVE_EXAMPLES}`)
  finish(serve, accept, (flags) => async (desk) => (await import('./commands/serve.js')).serve(desk, flags))
  const openapi = addCommand(program, 'openapi', 'Print the OpenAPI document of the HTTP interface')
  for (const [flag, description] of OPENAPI_FLAGS) openapi.option(flag, description)
  finish(
    openapi,
    accept,
    (flags) => async (desk) => (await import('./commands/openapi.js')).printOpenApi(desk, flags),
  )
}

function addCommand(parent: Command, name: string, summary: string): Command {
  return parent.command(name).description(summary).helpOption('--help', 'print help').helpCommand(false)
}

function finish(
  command: Command,
  accept: Accept,
  makeTask: (flags: Record<string, unknown>, words: string[]) => Task,
): void {
  command.action((...given: unknown[]) => {
    const words = given.slice(0, -2) as string[]
    const flags = command.optsWithGlobals()
    accept(flags, makeTask(flags, words))
  })
}

function addGlobalFlags(command: Command): void {
  for (const setting of Object.values(SETTINGS) as Setting[]) {
    const option = new Option(setting.flag, setting.description)
    if (setting.choices !== undefined) option.choices(setting.choices)
    if (setting.isRepeatable)
      option.argParser((text: string, before?: string) => (before === undefined ? text : `${before},${text}`))
    command.addOption(option)
  }
}

/** Commands before options, because they are what is looked for; the options of the program stand in its own help. */
function layOutHelp(command: Command, help: Help): string {
  const commands = help.visibleCommands(command)
  const width = help.padWidth(command, help)
  const row = (term: string, text: string) => help.formatItem(term, width, text, help)
  const isGroup = commands.length > 0 && command.parent !== null
  const rows = {
    'Commands:': commands.map((child) => row(termOf(child), child.description())),
    'Arguments:': help
      .visibleArguments(command)
      .map(({ description }, at) => row(command.registeredArguments[at]!.name(), description)),
    'Options:': isGroup
      ? []
      : help
          .visibleOptions(command)
          .filter((option) => !isTwin(command, option, '--no-', '--'))
          .map((option) => {
            const mark = isTwin(command, option, '--', '--no-') ? '--[no-]' : '--'
            return row(help.optionTerm(option).replace('--', mark), help.optionDescription(option))
          }),
  }
  const sections = Object.entries(rows).flatMap(([heading, items]) =>
    help.formatItemList(heading, items, help),
  )
  const besides = command.parent === null ? [] : [`Options of every command: coffer --help`, '']
  return [
    `Usage: ${help.commandUsage(command)}`,
    '',
    command.description(),
    '',
    ...sections,
    ...besides,
  ].join('\n')
}

/** Whether there is an option like this one that begins with `other` instead of `own`. */
function isTwin({ options }: Command, { long }: Option, own: string, other: string): boolean {
  return long?.startsWith(own) === true && options.some((each) => each.long === long.replace(own, other))
}

/** A command and what follows it. */
function termOf(command: Command): string {
  const words = command.registeredArguments.map((argument) => {
    const name = argument.variadic ? `${argument.name()}...` : argument.name()
    return argument.required ? `<${name}>` : `[${name}]`
  })
  return [command.name(), ...words].join(' ')
}

function configureOutput(command: Command, columns: number, append: (text: string) => void): void {
  command.configureOutput({
    writeOut: append,
    writeErr: append,
    getOutHelpWidth: () => columns,
    getErrHelpWidth: () => columns,
  })
  for (const child of command.commands) configureOutput(child, columns, append)
}

/** Commander's message in our manner: no prefix, one line, its suggestion kept. */
function cleanMessage(text: string): string {
  const line = text
    .trim()
    .replace(/^error: /, '')
    .replaceAll(/\s*\n\s*/g, ' ')
    // What was given to the option may be secret.
    .replace(/^unknown option '(--[^=']*|-[^-]).*'/, "unknown option '$1'")
  const isAtALoss = /^unknown (command|option)/.test(line) && !line.endsWith(')')
  const end = isAtALoss ? '. See: coffer --help' : /[.?)]$/.test(line) ? '' : '.'
  return `${line.charAt(0).toUpperCase()}${line.slice(1)}${end}`
}
