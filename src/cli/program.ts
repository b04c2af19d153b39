/** The tree of commands, with and without an operation; or only the command that the line begins with. */
import { Command, CommanderError, Option } from 'commander'
import { omitUndefined } from '../domain/omit-undefined.js'
import { usage } from '../errors.js'
import { takesIdempotencyKey } from '../framework/idempotency/idempotency-key.js'
import { isPaged } from '../framework/page.js'
import type { RegisteredOperation, Registry } from '../framework/registry.js'
import { ALL_SETTINGS } from '../global-flags.js'
import { VERSION } from '../version.js'
import { adviseOnLine } from './advice.js'
import { findPresentation } from './commands/presentations.js'
import { TERMINAL_COMMANDS, TERMINAL_NOUNS } from './commands/terminal-commands.js'
import type { CommandContext, CommandFacts, OptionFacts } from './context.js'
import { cleanMessage, describeTerminalCommand, describeVariants, layOutHelp, TOPICS } from './help-layout.js'
import { addFlags, chooseVariant, listArgs, listVariants, splitBooleans, takesBody } from './input/options.js'
import { foldHelp } from './output/display.js'
import { DEFAULT_COLUMNS } from './output/terminal.js'
import type { CommandOption, TerminalCommand } from './task.js'

export type Run = (context: CommandContext) => Promise<void>

export interface ParsedLine {
  flags: Record<string, unknown>
  run: Run
}

/** Whether `argv` can be parsed, and its command run, without the operations. */
export function isAlone([first]: readonly string[]): boolean {
  return TERMINAL_COMMANDS.some((command) => command.name === first && command.isAlone)
}

/** Parses `argv` (without node and script); `text` is the requested help or version. @throws CofferError `usage` */
export function parseLine(
  argv: readonly string[],
  registry: Registry,
  columns: number,
): ParsedLine | { text: string } {
  let text = ''
  let parsed: ParsedLine | undefined
  const program = buildProgram(registry, argv, (flags, run) => {
    parsed = { flags, run }
  })
  configureOutput(program, columns, (chunk) => {
    text += chunk
  })
  const line = splitBooleans(moveHelpLast(argv, registry), registry.operations)
  admitMissingWords(program, line)
  try {
    program.parse(line, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    const advise = (message: string) => adviseOnLine(message, argv, registry)
    const isHelp = error.exitCode === 0 || error.code === 'commander.help'
    if (isHelp) return { text }
    throw usage(cleanMessage(text || error.message, advise), { cause: error })
  }
  return parsed ?? { text }
}

/** Help says what is required; the command asks for what is missing, or refuses to run. */
function admitMissingWords(program: Command, argv: readonly string[]): void {
  if (argv.some((word) => word === '--help' || word === '-h')) return
  let command = program
  for (const word of argv) command = command.commands.find((child) => child.name() === word) ?? command
  for (const argument of command.registeredArguments) argument.required = false
}

/** `token help create` as `token create --help`. */
function moveHelpLast(argv: readonly string[], { nouns }: Registry): readonly string[] {
  const [noun = '', verb, ...rest] = argv
  const isNoun = Object.hasOwn(TERMINAL_NOUNS, noun) || nouns.some(({ name }) => name === noun)
  return isNoun && verb === 'help' ? [noun, ...rest, '--help'] : argv
}

/** All commands, the program itself first with `words: []`. */
export function listCommands(registry: Registry): CommandFacts[] {
  const nouns = [...registry.nouns.map(({ name }) => name), ...Object.keys(TERMINAL_NOUNS)]
  const program = buildProgram(registry, nouns, () => {})
  const globals = longFlags(program)
  const walk = (command: Command, words: readonly string[]): CommandFacts[] => {
    const flags = [...new Set([...longFlags(command), '--help', ...globals])]
    const { details, examples } = TERMINAL_COMMANDS.find(({ name }) => name === words.join(' ')) ?? {}
    const facts = {
      ...omitUndefined({ details, examples }),
      words,
      summary: command.description(),
      flags,
      arguments: command.registeredArguments.map((argument) => ({
        name: argument.name(),
        description: argument.description,
        required: argument.required,
      })),
      options: command.options.map(describeOption),
    }
    return [facts, ...command.commands.flatMap((child) => walk(child, [...words, child.name()]))]
  }
  return walk(program, [])
}

function describeOption({ short, long, required, optional, description, argChoices }: Option): OptionFacts {
  return {
    names: [short, long].filter((name) => name !== undefined && name !== null),
    hasValue: required || optional,
    description,
    ...omitUndefined({ choices: argChoices }),
  }
}

function longFlags(command: Command): string[] {
  return command.options.filter(({ hidden }) => !hidden).flatMap(({ long }) => long ?? [])
}

type Accept = (flags: Record<string, unknown>, run: Run) => void

function buildProgram(registry: Registry, argv: readonly string[], accept: Accept): Command {
  const program = new Command('coffer')
  program
    .description('A token vault in your terminal, and a drop-in local server of the same interface.')
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help for a command')
    .helpCommand(false)
    .configureHelp({ formatHelp: layOutHelp })
    .showSuggestionAfterError(true)
    .addHelpText('after', () => `\n${foldHelp(TOPICS, widthOf(program))}`)
  // Commander copies this to the commands created below.
  program.exitOverride()
  // Global options are accepted anywhere on the command line.
  addGlobalFlags(program)
  const asked = registry.find(argv.slice(0, 2).join(' '))
  if (asked !== undefined && hasCommand(asked)) {
    addOperation(addGroup(program, asked.noun, ''), registry, asked, accept)
    return program
  }
  const groups = new Map<string, Command>()
  for (const { name, summary, groups: inner = {} } of registry.nouns) {
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
    if (verb === undefined) addTerminalCommand(program, noun, command, accept)
    else if (argv.includes(noun) && groups.has(noun))
      addTerminalCommand(groups.get(noun)!, verb, command, accept)
  }
  // Builds only the verbs of the requested noun, because building all takes most of the time of `--help`.
  for (const definition of registry.operations) {
    const { noun, group } = definition
    if (argv.includes(noun) && hasCommand(definition))
      addOperation(groups.get(group === undefined ? noun : `${noun} ${group}`)!, registry, definition, accept)
  }
  return program
}

function addGroup(program: Command, noun: string, summary: string): Command {
  return addCommand(program, noun, summary).usage('<command> [options]')
}

function hasCommand({ isInternal, form }: RegisteredOperation): boolean {
  return isInternal !== true && form === undefined
}

function addOperation(group: Command, registry: Registry, definition: RegisteredOperation, accept: Accept) {
  const forms = listVariants(registry, definition)
  const command = addCommand(group, definition.verb, definition.summary)
  const { arguments: words, options = [] } = findPresentation(definition)
  for (const [name, description] of words ?? listArgs(definition)) command.argument(name, description)
  // A command with its own arguments reads its input from them and its options.
  if (words === undefined) for (const each of [definition, ...forms]) addFlags(command, each)
  addOptions(command, options)
  if (takesBody(definition))
    command.option('--file <file>', 'the whole body as JSON; - reads standard input; flags override it')
  // Writes always answer with masked data.
  if (definition.isRevealable && definition.log?.operation === 'read')
    command.option('--reveal', 'show data in the clear')
  // A command that only reads can be repeated anyway.
  if (takesIdempotencyKey(definition) && definition.log?.operation !== 'read')
    command.option(
      '--idempotency-key <key>',
      'for 24 hours, a command repeated with the same key answers like the first and does nothing',
    )
  if (isPaged(definition.input)) command.option('--all', 'all pages')
  if (definition.endpoint !== undefined)
    command.option('--curl', 'print the call of curl that this command equals, without sending it')
  if (definition.isExplainable) {
    command.option('--explain', 'print the answer and the deciding access rules without performing it')
    command.option('--explain-as <app-id>', 'the same, with this application as the caller')
  }
  const describe = () => describeVariants(definition, forms)
  finish(command, describe, accept, async (context, given, all) => {
    const { chosen, options } = chooseVariant(definition, forms, all)
    const { runOperation } = await import('./run.js')
    await runOperation(context, chosen, given, options)
  })
}

function addTerminalCommand(parent: Command, name: string, definition: TerminalCommand, accept: Accept) {
  const command = addCommand(parent, name, definition.summary)
  for (const [word, description] of definition.arguments ?? []) command.argument(word, description)
  addOptions(command, definition.options ?? [])
  const describe = () => describeTerminalCommand(definition)
  finish(command, describe, accept, async (context, given, options) => {
    const { askArgAt, completeArgs } = await import('./input/args.js')
    const specs = definition.arguments ?? []
    const args = await completeArgs(definition.name, specs, given, askArgAt(context.terminal))
    return definition.run(context, args, options)
  })
}

function addOptions(command: Command, options: readonly CommandOption[]): void {
  for (const [flag, description, isRepeatable] of options)
    if (isRepeatable)
      command.option(flag, description, (text, before?: string[]) => [...(before ?? []), text])
    else command.option(flag, description)
}

function addCommand(parent: Command, name: string, summary: string): Command {
  return parent.command(name).description(summary).helpOption('-h, --help', 'print help').helpCommand(false)
}

function widthOf(command: Command): number {
  return command.configureOutput().getOutHelpWidth?.() ?? DEFAULT_COLUMNS
}

function finish(command: Command, describe: () => string, accept: Accept, run: TerminalCommand['run']): void {
  command.addHelpText('after', () => `\n${foldHelp(describe(), widthOf(command))}`)
  command.action((...given: unknown[]) => {
    const words = given.slice(0, -2).flat() as (string | undefined)[]
    const options = command.optsWithGlobals()
    accept(options, (context) => run(context, words, options))
  })
}

function addGlobalFlags(command: Command): void {
  for (const setting of ALL_SETTINGS) {
    const short = setting.short === undefined ? '' : `-${setting.short}, `
    const option = new Option(short + setting.flag, setting.description)
    if (setting.choices !== undefined) option.choices(setting.choices)
    if (setting.isRepeatable)
      option.argParser((text: string, before?: string) => (before === undefined ? text : `${before},${text}`))
    command.addOption(option)
  }
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

/** The help of a command. @throws CofferError `usage` for an unknown one */
export function describeCommand(registry: Registry, words: readonly string[], columns: number): string {
  const path = words.join(' ')
  // Parsing an unknown command throws an error with a suggestion.
  if (!listCommands(registry).some((command) => command.words.join(' ') === path))
    parseLine(words, registry, columns)
  const parsed = parseLine([...words, '--help'], registry, columns)
  if ('text' in parsed) return parsed.text
  throw usage(`There is no help for "${path}".`)
}
