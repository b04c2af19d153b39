import { Command, CommanderError, Option } from 'commander'
import { usage } from '../errors.js'
import { takesIdempotencyKey } from '../framework/operation.js'
import { isPaged } from '../framework/page.js'
import type { RegisteredOperation, Registry } from '../framework/registry.js'
import { ALL_SETTINGS, SETTINGS } from '../global-flags.js'
import { VERSION } from '../version.js'
import { findPresentation } from './commands/presentations.js'
import { TERMINAL_COMMANDS, TERMINAL_NOUNS } from './commands/terminal-commands.js'
import type { CommandContext, CommandOption } from './context.js'
import { addFlags, chooseVariant, listArgs } from './input/options.js'
import { fold, joinLines } from './output/display.js'
import { DEFAULT_COLUMNS } from './output/terminal.js'
import type { TerminalCommand } from './task.js'

interface ParsedLine {
  flags: Record<string, unknown>
  run(context: CommandContext): Promise<void>
}

/** Parses `argv` (without node and script); `text` is the requested help or version, empty for the help of all. @throws CofferError `usage` */
export function parseLine(
  argv: readonly string[],
  registry: Registry,
  columns: number,
): ParsedLine | { text: string } {
  const tree = new CommandTree(registry, argv, columns)
  try {
    tree.program.parse(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode !== 0 && error.code !== 'commander.help')
      throw usage(explainMessage(tree.text || error.message, argv, registry), { cause: error })
  }
  return tree.parsed ?? { text: tree.text }
}

/** Words that people type for a verb, or for a command. */
const SYNONYMS: Readonly<Record<string, string>> = {
  ...{ rm: 'delete', remove: 'delete', ls: 'list', show: 'get', read: 'get', find: 'search', add: 'create' },
  ...{ new: 'create', edit: 'update', rotate: 'rekey', audit: 'log list', users: 'member list' },
}
const WHERE_DATA_IS = 'Give the data on standard input with --data -, or as --data @FILE.'

/** Commander's message as one line, with its suggestion or where to find help. */
function explainMessage(text: string, argv: readonly string[], registry: Registry): string {
  const line = text
    .trim()
    .replace(/^error: ./, (start) => start.slice(-1).toUpperCase())
    .replaceAll(/\s*\n\s*/g, ' ')
    // The value of the option may be secret.
    .replace(/^Unknown option '(--[^=']*|-[^-]).*'/, "Unknown option '$1'")
  const words = argv.filter((word) => !word.startsWith('-'))
  const [first = '', second = ''] = words
  if (line.startsWith("Too many arguments for 'create'") && first === 'token')
    return `${line} ${WHERE_DATA_IS}`
  if (!/^Unknown (command|option)/.test(line)) return line.replace(/[^.?)]$/, '$&.')
  const [start = '', plural = ''] = /^Unknown command '([^']+?)s?'/.exec(line) ?? []
  const commands = registry.operations.filter(hasCommand)
  const names = [...TERMINAL_COMMANDS, ...registry.nouns, ...commands].map(({ name }) => name)
  const [one, two] = [first, second].map((word) => SYNONYMS[word] ?? word)
  const others = [`${second} ${first}`, `${first} ${two}`, SYNONYMS[first], `token ${one}`, `vault ${one}`]
  const meant =
    names.find((name) => ` ${name}`.endsWith(` ${plural} list`)) ??
    others.find((name = '') => start !== '' && names.includes(name))
  if (meant !== undefined) return `${start}. Did you mean: coffer ${meant}?`
  if (line.includes(' (Did you mean')) return line
  const path = [3, 2, 1].map((count) => words.slice(0, count).join(' ')).find((each) => names.includes(each))
  return `${line}. See: coffer ${path === undefined ? '' : `${path} `}--help`
}

/** The help of a command. @throws CofferError `usage` for an unknown one */
export function describeCommand(registry: Registry, words: readonly string[], columns: number): string {
  // Parsing an unknown command throws an error with a suggestion.
  parseLine(words, registry, columns)
  const parsed = parseLine([...words, '--help'], registry, columns)
  return 'text' in parsed ? parsed.text : ''
}

export function findTerminalCommand(name?: string): TerminalCommand | undefined {
  return TERMINAL_COMMANDS.find((command) => command.name === name)
}

/** Nouns and commands without a noun, with their summaries. */
export function listSummaries(registry: Registry): { name: string; summary: string }[] {
  const nouns = Object.entries(TERMINAL_NOUNS).map(([name, summary]) => ({ name, summary }))
  return [...registry.nouns, ...nouns, ...TERMINAL_COMMANDS]
}

export function listCommands(registry: Registry): Command {
  const nouns = [...registry.nouns.map(({ name }) => name), ...Object.keys(TERMINAL_NOUNS)]
  return new CommandTree(registry, nouns, DEFAULT_COLUMNS).program
}

/** Help says which arguments are required. The command asks for those that are missing, or refuses to run. */
class LenientCommand extends Command {
  override createCommand(name: string): Command {
    return new LenientCommand(name)
  }

  missingArgument(): void {}
}

/** The commands that a line may mean. Parsing the line sets `parsed`, or `text` to the help or message of commander. */
class CommandTree {
  readonly program = new LenientCommand('coffer')
  parsed: ParsedLine | undefined
  text = ''
  readonly #registry: Registry
  readonly #columns: number

  constructor(registry: Registry, argv: readonly string[], columns: number) {
    this.#registry = registry
    this.#columns = columns
    const { program } = this
    // Help is for a command; that of all is written by the caller.
    program.helpInformation = () => ''
    const append = (chunk: string) => {
      this.text += chunk
    }
    const width = () => columns
    // Commander copies these settings to the commands created below.
    program
      .description('A token vault in your terminal, and a drop-in local server of the same interface.')
      .version(VERSION, '-V, --version', 'print the version')
      .helpOption('-h, --help', 'print help for a command')
      .helpCommand(false)
      .configureHelp({ minWidthToWrap: 20, subcommandTerm: describeTerm })
      .configureOutput({ writeOut: append, writeErr: append, getOutHelpWidth: width, getErrHelpWidth: width })
      .exitOverride()
    // Global options are accepted anywhere on the command line.
    addGlobalFlags(program)
    const asked = registry.find(argv.slice(0, 2).join(' '))
    if (asked !== undefined && hasCommand(asked)) this.#addOperation(addGroup(program, asked.noun, ''), asked)
    else this.#addAll(argv)
  }

  /** Adds the verbs of nouns in `argv` only, because building all takes most of the time of `--help`. */
  #addAll(argv: readonly string[]): void {
    const { program } = this
    const groups = new Map<string, Command>()
    for (const { name, summary, groups: inner = {} } of this.#registry.nouns) {
      const group = addGroup(program, name, summary)
      groups.set(name, group)
      if (!argv.includes(name)) continue
      for (const [word, text] of Object.entries(inner))
        groups.set(`${name} ${word}`, addGroup(group, word, text))
    }
    for (const [name, summary] of Object.entries(TERMINAL_NOUNS))
      groups.set(name, addGroup(program, name, summary))
    for (const command of TERMINAL_COMMANDS) {
      const [noun = '', verb] = command.name.split(' ')
      const group = argv.includes(noun) ? groups.get(noun) : undefined
      if (verb === undefined) this.#addTerminalCommand(program, noun, command)
      else if (group !== undefined) this.#addTerminalCommand(group, verb, command)
    }
    for (const definition of this.#registry.operations) {
      const { noun, group } = definition
      if (argv.includes(noun) && hasCommand(definition))
        this.#addOperation(groups.get(group === undefined ? noun : `${noun} ${group}`)!, definition)
    }
  }

  #addTerminalCommand(parent: Command, name: string, definition: TerminalCommand): void {
    const { summary, arguments: specs = [], options = [] } = definition
    const command = addCommand(parent, name, summary)
    for (const [word, description] of specs) command.argument(word, description)
    addOptions(command, options)
    this.#finish(command, describeExamples(definition), async (context, given, all) => {
      const { completeArgs } = await import('./input/gather.js')
      return definition.run(context, await completeArgs(context, definition.name, specs, given), all)
    })
  }

  #addOperation(group: Command, definition: RegisteredOperation): void {
    const forms = this.#registry.operations.filter(({ form }) => form?.command === definition.name)
    const command = addCommand(group, definition.verb, definition.summary)
    const { arguments: words, options = [] } = findPresentation(definition)
    for (const [name, description] of words ?? listArgs(definition)) command.argument(name, description)
    // A command with its own arguments reads its input from them and its options.
    if (words === undefined) for (const each of [definition, ...forms]) addFlags(command, each)
    addOptions(command, [...options, ...listOptions(definition)])
    const texts = forms.map((other) => {
      return `\n\nWith --${other.form?.flag}: ${other.summary}\n${describeOperation(other)}`
    })
    this.#finish(command, describeOperation(definition) + texts.join(''), async (context, given, all) => {
      const { chosen, options } = chooseVariant(definition, forms, all)
      const { runOperation } = await import('./run.js')
      await runOperation(context, chosen, given, options)
    })
  }

  #finish(command: Command, details: string, run: TerminalCommand['run']): void {
    command.addHelpText(
      'after',
      () => `\nGlobal options: coffer help flags\n\n${fold(details, this.#columns)}`,
    )
    command.action((...given: unknown[]) => {
      const words = given.slice(0, -2).flat() as (string | undefined)[]
      const options = command.optsWithGlobals()
      this.parsed = { flags: options, run: (context) => run(context, words, options) }
    })
  }
}

function describeTerm(command: Command): string {
  return `${command.name()} ${command.usage()}`.replace(/ (<command> )?\[options\]/, '')
}

function addGroup(program: Command, noun: string, summary: string): Command {
  return addCommand(program, noun, summary).usage('<command> [options]').helpCommand(true)
}

function addCommand(parent: Command, name: string, summary: string): Command {
  return parent.command(name).description(summary).helpOption('-h, --help', 'print help').helpCommand(false)
}

function hasCommand({ isInternal, form }: RegisteredOperation): boolean {
  return isInternal !== true && form === undefined
}

/** The options that follow from a declaration, besides the flags of its input. */
function listOptions(definition: RegisteredOperation): CommandOption[] {
  const isRead = definition.log?.operation === 'read'
  const options: [isThere: boolean | undefined, ...CommandOption][] = [
    [
      definition.endpoint?.takesBody,
      '--file <file>',
      'the whole body as JSON; - reads standard input; flags override it',
    ],
    // Writes always answer with masked data.
    [definition.isRevealable && isRead, '--reveal', 'show data in the clear'],
    // A command that only reads can be repeated anyway.
    [
      takesIdempotencyKey(definition) && !isRead,
      '--idempotency-key <key>',
      'for 24 hours, a command repeated with the same key answers like the first and does nothing',
    ],
    [isPaged(definition.input), '--all', 'all pages'],
    [
      definition.endpoint !== undefined,
      '--curl',
      'print the call of curl that this command equals, without sending it',
    ],
    [
      definition.isExplainable,
      '--explain',
      'print the answer and the deciding access rules without performing it',
    ],
    [definition.isExplainable, '--explain-as <app-id>', 'the same, with this application as the caller'],
  ]
  return options.flatMap(([isThere, ...option]) => (isThere ? [option] : []))
}

function addOptions(command: Command, options: readonly CommandOption[]): void {
  for (const [flag, description, isRepeatable] of options)
    if (isRepeatable)
      command.option(flag, description, (text, before?: string[]) => [...(before ?? []), text])
    else command.option(flag, description)
}

function addGlobalFlags(command: Command): void {
  for (const { short, flag, description, choices, isRepeatable } of ALL_SETTINGS) {
    const option = new Option(short === undefined ? flag : `-${short}, ${flag}`, description)
    if (choices !== undefined) option.choices(choices)
    // It is no negation of --reveal, which other commands have.
    if (option.long === SETTINGS.noReveal.word) option.negate = false
    if (isRepeatable)
      option.argParser((text: string, before?: string) => (before === undefined ? text : `${before},${text}`))
    command.addOption(option)
  }
  command.addOption(new Option('--json', 'the same as --output json').implies({ output: 'json' }))
}

function describeOperation(definition: RegisteredOperation): string {
  const { permissions, needsOnePermission, onlyFor, endpoint, audience } = definition
  const key = onlyFor === undefined ? 'any valid key' : `the key of a ${onlyFor} application`
  const held = permissions.join(needsOnePermission ? ' or ' : ', ') || `none; ${key}`
  const who = audience === 'owner' ? 'For the owner of the vault.' : `Permissions: ${held}`
  const http = endpoint === undefined ? '' : `\nHTTP:        ${endpoint.method} ${endpoint.path}`
  return `${describeExamples(definition)}\n\n${who}${http}`
}

function describeExamples({ details, examples }: Pick<TerminalCommand, 'details' | 'examples'>): string {
  const text = details === undefined ? '' : `${joinLines(details)}\n\n`
  return `${text}Examples:\n${examples.map((line) => `  $ ${line}`).join('\n')}`
}
