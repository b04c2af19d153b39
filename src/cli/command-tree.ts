import { Command, Help, Option } from 'commander'
import { usage } from '../errors.js'
import { takesIdempotencyKey } from '../framework/declaration.js'
import { isPaged } from '../framework/page.js'
import type { RegisteredOperation, Registry } from '../framework/registry.js'
import { memberOf } from '../framework/schema.js'
import { ALL_SETTINGS, SETTINGS } from '../global-flags.js'
import { VERSION } from '../version.js'
import { TERMINAL_COMMANDS, TERMINAL_NOUNS } from './commands/terminal-commands.js'
import type { Args, CommandOption, Options } from './context.js'
import { refuseDashes } from './input/dash.js'
import { type Flag, listArgs, listFlags, takesSeveralBodies, toFlag } from './input/flags.js'
import { findPresentation } from './nouns/all.js'
import { fold, indent, joinLines } from './output/display.js'
import { shortFormOf } from './short-forms.js'
import type { TerminalCommand } from './task.js'

const MIN_DESCRIPTION = 20
const MARGIN = 2

export interface ParsedLine {
  command: TerminalCommand | readonly RegisteredOperation[]
  args: Args
  options: Options
}

/**
 * Accepts missing arguments, because the command itself asks for them or refuses to run. The help still marks these
 * arguments as required.
 */
class LenientCommand extends Command {
  override createCommand(name: string): Command {
    return new LenientCommand(name)
  }

  missingArgument(): void {}
}

/**
 * Parses a command line. `text` is the help or the error of commander, and `parsed` is undefined if there is no command
 * to run.
 */
export class CommandTree {
  readonly program = new LenientCommand('coffer')
  parsed: ParsedLine | undefined
  text = ''
  readonly #registry: Registry
  readonly #columns: number

  constructor(registry: Registry, argv: readonly string[], columns: number) {
    this.#registry = registry
    this.#columns = columns
    const { program } = this
    // The caller of this class prints the help of the program.
    program.helpInformation = () => ''
    const append = (chunk: string) => {
      this.text += chunk
    }
    const width = () => columns
    // Commander copies these settings to the commands created below.
    program
      .description('A token vault in your terminal, and a server for your tests.')
      .version(VERSION, '-V, --version', 'print the version')
      .helpOption('-h, --help', 'print help for a command')
      .helpCommand(false)
      .configureHelp(formatFor(columns))
      .configureOutput({ writeOut: append, writeErr: append, getOutHelpWidth: width, getErrHelpWidth: width })
      .exitOverride()
    addGlobalFlags(program)
    const asked = registry.find(argv.slice(0, 2).join(' '))
    if (asked !== undefined && hasCommand(asked)) this.#addOperation(addGroup(program, asked.noun, ''), asked)
    else this.#addAll(argv)
  }

  /** Adds verbs only for the nouns in `argv`, because building all verbs takes most of the time of `--help`. */
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
    for (const definition of this.#registry.operations) {
      const { noun, group } = definition
      if (argv.includes(noun) && hasCommand(definition))
        this.#addOperation(groups.get(group === undefined ? noun : `${noun} ${group}`)!, definition)
    }
    for (const command of TERMINAL_COMMANDS) {
      const [noun = '', verb] = command.name.split(' ')
      const group = argv.includes(noun) ? groups.get(noun) : undefined
      if (verb === undefined) this.#addTerminalCommand(program, noun, command)
      else if (group !== undefined) this.#addTerminalCommand(group, verb, command)
    }
  }

  #addTerminalCommand(parent: Command, name: string, definition: TerminalCommand): void {
    const { summary, arguments: specs = [], options = [] } = definition
    const command = addCommand(parent, name, summary)
    for (const [word, description] of specs) command.argument(word, description)
    addOptions(command, options)
    this.#finish(command, describeExamples(definition), definition)
  }

  #addOperation(group: Command, definition: RegisteredOperation): void {
    const forms = this.#registry.formsOf(definition.name)
    const command = addCommand(group, definition.verb, definition.summary)
    const { arguments: words, options = [] } = findPresentation(definition)
    for (const [name, description] of words ?? listArgs(definition)) command.argument(name, description)
    // A command with its own arguments has no flags for properties of the input.
    if (words === undefined) for (const each of [definition, ...forms]) addFlags(command, each)
    addOptions(command, [...options, ...listOptions(definition)])
    const texts = forms.map((other) => {
      return `\n\nWith --${other.cli?.form?.flag}: ${other.summary}\n${describeOperation(other)}`
    })
    this.#finish(command, describeOperation(definition) + texts.join(''), [definition, ...forms])
  }

  #finish(command: Command, details: string, definition: ParsedLine['command']): void {
    const more = () => `\nGlobal options: coffer help flags\n\n${fold(details, this.#columns)}`
    command.addHelpText('after', more)
    command.action((...given: unknown[]) => {
      const args = given.slice(0, -2).flat() as (string | undefined)[]
      const options = new Map(command.options.map((option) => [option.flags, option.attributeName()]))
      refuseDashes([...options.keys()], (flags) => command.getOptionValue(options.get(flags)!))
      this.parsed = { command: definition, args, options: command.optsWithGlobals() }
    })
  }
}

/** Wraps commander's help at `columns`, because a terminal would break longer lines within words. */
function formatFor(columns: number) {
  const usual = Object.assign(new Help(), { helpWidth: columns, minWidthToWrap: MIN_DESCRIPTION })
  return {
    minWidthToWrap: MIN_DESCRIPTION,
    subcommandTerm: describeTerm,
    commandUsage(command: Command): string {
      const [program, rest = ''] = usual.commandUsage(command).split(/ (.*)/s)
      const margin = `Usage: ${program} `.length
      return `${program} ${indent(fold(rest, columns - margin), margin).trimStart()}`
    },
    formatItem(term: string, termColumns: number, description: string, helper: Help): string {
      const left = columns - MARGIN - termColumns - MARGIN
      if (left >= MIN_DESCRIPTION || description === '')
        return usual.formatItem(term, termColumns, description, helper)
      // If there is no space for a second column, the description goes below the term.
      const below = indent(fold(description, columns - 3 * MARGIN), 3 * MARGIN)
      return `${' '.repeat(MARGIN)}${term}\n${below}`
    },
  }
}

function describeTerm(command: Command): string {
  return `${command.name()} ${command.usage()}`.replace(/ (<command> )?\[options\]/, '')
}

function addGroup(program: Command, noun: string, summary: string): Command {
  return addCommand(program, noun, summary)
    .usage('<command> [options]')
    .helpCommand('help [command]', 'print help for a command')
}

function addCommand(parent: Command, name: string, summary: string): Command {
  return parent.command(name).description(summary).helpOption('-h, --help', 'print help').helpCommand(false)
}

export function hasCommand({ cli }: RegisteredOperation): boolean {
  return cli?.isInternal !== true && cli?.form === undefined
}

function listOptions(definition: RegisteredOperation): CommandOption[] {
  const { endpoint, input, log, plaintext, isExplainable } = definition
  const takesBody = endpoint?.takesBody
  const isRead = log?.operation === 'read'
  const options: [isThere: boolean | undefined, ...CommandOption][] = [
    [
      takesBody,
      '--file <file>',
      `${takesSeveralBodies(definition) ? 'the body as JSON, or a body on each line' : 'the whole body as JSON'}; - reads standard input; flags override it`,
    ],
    // Commands that write have no `--reveal`, because the answers of writes are always masked.
    [plaintext !== 'never' && isRead, '--reveal', 'show data in plaintext'],
    // A command that only reads needs no idempotency key, because every repetition is harmless.
    [
      takesIdempotencyKey(definition) && !isRead,
      '--idempotency-key <key>',
      'repeating the command with this key within 24 hours returns the first answer',
    ],
    [isPaged(input), '--all', 'all pages'],
    [endpoint !== undefined, '--curl', 'print the equivalent curl command, and send nothing'],
    [isExplainable, '--explain', 'print the answer and the deciding access rules, and perform nothing'],
    [isExplainable, '--explain-as <app-id>', 'like --explain, with this application as the caller'],
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
    // Without this, commander takes --no-reveal for the negation of --reveal.
    if (option.long === SETTINGS.noReveal.word) option.negate = false
    if (isRepeatable)
      option.argParser((text: string, before?: string) => (before === undefined ? text : `${before},${text}`))
    command.addOption(option)
  }
  command.addOption(new Option('--json', 'the same as --output json').implies({ output: 'json' }))
}

const SEVERAL_BODIES =
  'Several bodies, one on each line (NDJSON), are created in order. The command stops at the first line that is refused. The records of the lines before this line stay.'

function describeOperation(definition: RegisteredOperation): string {
  const { access, endpoint } = definition
  const { owner, permissions, isAnyEnough, keyOf } = access
  const key = keyOf === undefined ? 'any valid key' : `the key of a ${keyOf} application`
  const held = permissions.join(isAnyEnough ? ' or ' : ', ') || `none; ${key}`
  const who = owner !== undefined ? 'For the owner of the vault.' : `Permissions: ${held}`
  const http = endpoint === undefined ? '' : `\n${describeCall(endpoint)}`
  const several = takesSeveralBodies(definition) ? `${SEVERAL_BODIES}\n\n` : ''
  return `${describeExamples(definition, several)}\n\n${who}${http}`
}

const HTTP_LABEL = 'HTTP:'.padEnd('Permissions: '.length)
/** The number of characters that fit beside the label in 60 columns. */
const MAX_CALL = 47

function describeCall({ method, path }: { method: string; path: string }): string {
  const call = `${method} ${path}`
  return HTTP_LABEL + (call.length > MAX_CALL ? `${method}\n${' '.repeat(HTTP_LABEL.length)}${path}` : call)
}

function describeExamples(
  { details, examples }: Pick<TerminalCommand, 'details' | 'examples'>,
  more = '',
): string {
  const text = details === undefined ? '' : `${joinLines(details)}\n\n`
  return `${text}${more}Examples:\n${examples.map((line) => `  $ ${line}`).join('\n')}`
}

function placeholderOf({ schema, shape }: Flag): string {
  const form = shortFormOf(memberOf(schema))
  if (form !== undefined) return form.placeholder
  if (schema.type === 'integer') return '<number>'
  if (schema.refersTo !== undefined) return schema.refersTo === 'token' ? '<id>' : '<name>'
  if (schema.cli?.isPath) return '<file>'
  if (shape === 'map') return '<key=value>'
  return shape === 'json' ? '<json>' : '<text>'
}

function addFlags(command: Command, definition: RegisteredOperation): void {
  for (const flag of listFlags(definition)) {
    const { name, shape, schema } = flag
    // Another form of the command may have added the same flag.
    if (command.options.some(({ long }) => long === name)) continue
    const isOfForm = name === `--${definition.cli?.form?.flag}`
    // The flag that chooses this form is optional, because the command also has a form without the flag.
    const description = describeFlag(isOfForm ? { ...flag, isRequired: false } : flag)
    if (shape === 'boolean') {
      command.option(name, description)
      command.addOption(new Option(name.replace('--', '--no-'), description).hideHelp())
      continue
    }
    const placeholder = isOfForm && !flag.isRequired ? '[text]' : placeholderOf(flag)
    const short = schema.short === undefined ? '' : `-${schema.short}, `
    const isRepeatable = shape === 'list' || shape === 'map'
    command.option(`${short}${name} ${placeholder}`, description, (text, before: string[] | undefined) => {
      if (before !== undefined && !isRepeatable) throw usage(`${name} may be given only once.`)
      return [...(before ?? []), text]
    })
  }
}

function listNames(properties: readonly string[]): string {
  return properties.map((property) => toFlag(property, {}).name).join(' or ')
}

function describeFlag({ schema, shape, name, isRequired, unless }: Flag): string {
  const form = shortFormOf(memberOf(schema))
  const notes = [
    isRequired ? `required${unless === undefined ? '' : ` without ${listNames(unless)}`}` : '',
    shape === 'list' || shape === 'map' ? 'repeatable' : '',
    shape === 'boolean' ? `also ${name.replace('--', '--no-')}` : '',
    form === undefined ? '' : `such as '${form.example}', or JSON; see coffer help ${form.topic}`,
    schema.duration === undefined ? '' : `also a duration: 12h ${schema.duration}`,
    'default' in schema ? `default ${schema.default}` : '',
  ].filter((note) => note !== '')
  const { description: text = '' } = schema
  return notes.length === 0 ? text : `${text} (${notes.join(', ')})`
}
