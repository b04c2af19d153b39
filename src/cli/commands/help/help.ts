import { readFileSync } from 'node:fs'
import type { Command, Option } from 'commander'
import { findFixture } from '../../../assets.js'
import { omitUndefined } from '../../../domain/omit-undefined.js'
import { ERRORS } from '../../../errors.js'
import type { RegisteredOperation } from '../../../framework/registry.js'
import { toJsonSchema } from '../../../framework/schema.js'
import { ALL_SETTINGS } from '../../../global-flags.js'
import { VERSION } from '../../../version.js'
import { type Args, type CommandContext, type Options, TOPIC_NAMES } from '../../context.js'
import { listFlags } from '../../input/flags.js'
import { fold, indent, joinLines, measureWidth, toJson } from '../../output/display.js'
import { DEFAULT_COLUMNS, isTerminal, type Terminal, write } from '../../output/terminal.js'

type HelpIo = Pick<CommandContext, 'env' | 'listSummaries'> & Pick<Terminal, 'stdout'>

export async function printHelp(context: CommandContext, args: Args, options: Options): Promise<void> {
  const { stdout } = context.terminal
  const words = args as string[]
  const topic = words.length === 1 ? describeTopic(words[0]!, context.listCommands()) : undefined
  const text =
    topic === undefined ? context.describeCommand(words) : `${foldTopic(joinLines(topic), stdout.columns)}\n`
  if (options.man === true) return void (await write(stdout, await describeManual(context, words)))
  if (options.output !== 'json') return printHelpText({ ...context, stdout }, text)
  await write(stdout, `${toJson(describeTree(context, words.join(' ')), stdout.isTTY ? 2 : 0)}\n`)
}

/** Wraps text and the last column of tables. In a narrow terminal, the last column goes below the rest of its row. */
function foldTopic(topic: string, columns = DEFAULT_COLUMNS): string {
  const foldRow = (row: string, start: string, last: string) => {
    if (measureWidth(row) <= columns) return row
    const margin = start.length + 20 <= columns ? start.length : 6
    const text = indent(fold(last, columns - margin), margin)
    return margin < start.length ? `${stackColumns(start, columns)}\n${text}` : start + text.trimStart()
  }
  return fold(topic, columns).replaceAll(/^( .*\S {2,})(\S.*)$/gm, foldRow)
}

function stackColumns(row: string, width: number): string {
  const lines: string[] = []
  for (const column of row.trim().split(/ {2,}/)) {
    const longer = `${lines.at(-1)}  ${column}`
    if (lines.length > 0 && measureWidth(longer) <= width) lines[lines.length - 1] = longer
    else lines.push(lines.length === 0 ? `  ${column}` : `    ${column}`)
  }
  return measureWidth(row.trimEnd()) <= width ? row.trimEnd() : lines.join('\n')
}

export async function printHelpText(io: HelpIo, text: string): Promise<void> {
  if (text !== '') return page(io, text)
  const { describeGroups } = await import('./overview.js')
  const { stdout, listSummaries } = io
  return page(io, describeGroups(listSummaries(), TOPIC_NAMES, stdout.columns ?? DEFAULT_COLUMNS))
}

/** Prints through `PAGER` on a terminal. The `F` in `LESS` makes `less` quit if the text fits on the screen. */
async function page({ stdout, env }: HelpIo, text: string): Promise<void> {
  const { PAGER } = env
  if (PAGER && isTerminal(stdout)) {
    const { spawnSync } = await import('node:child_process')
    const options = { input: text, stdio: ['pipe', 'inherit', 'inherit'], env: { LESS: 'FRX', ...env } }
    const { status } = spawnSync('/bin/sh', ['-c', PAGER], options as never)
    // A status from 126 on means that the shell could not run the pager. A failure of the pager itself is ignored.
    if (status !== null && status < 126) return
  }
  await write(stdout, text)
}

/**
 * Returns the manual page of a noun, or of a command without a noun. For any other word, returns the page of the
 * program.
 */
export async function describeManual(
  context: Pick<CommandContext, 'registry' | 'findTerminalCommand' | 'listCommands'>,
  [word]: readonly string[],
): Promise<string> {
  const { formatManual } = await import('./manual.js')
  const { registry, findTerminalCommand } = context
  const program = context.listCommands()
  const command = program.commands.find((each) => each.name() === word)
  return formatManual(command ?? program, (name) => registry.find(name) ?? findTerminalCommand(name), {
    ...(command === undefined && {
      environment: describeEnvironment(),
      'exit status': describeExitCodes(),
    }),
  })
}

function describeTree(context: CommandContext, path: string): object {
  const program = context.listCommands()
  const walk = (command: Command, words: readonly string[]): object[] => [
    ...(path === '' || `${words.join(' ')} `.startsWith(`${path} `)
      ? [describeOne(command, words, context)]
      : []),
    ...command.commands.flatMap((child) => walk(child, [...words, child.name()])),
  ]
  return {
    version: VERSION,
    global_flags: program.options.map((option) => {
      const { variable } = ALL_SETTINGS.find(({ word }) => option.long === word) ?? {}
      return { ...describeFlag(option), ...omitUndefined({ variable }) }
    }),
    topics: TOPIC_NAMES,
    commands: program.commands.flatMap((command) => walk(command, [command.name()])),
  }
}

function describeOne(command: Command, words: readonly string[], context: CommandContext): object {
  const { registry, findTerminalCommand } = context
  const name = words.join(' ')
  const operation = registry.find(name)
  const { details, examples = [] } = operation ?? findTerminalCommand(name) ?? {}
  const described = {
    words,
    summary: command.description(),
    ...omitUndefined({ details }),
    arguments: command.registeredArguments.map((argument) => ({
      name: argument.name(),
      description: argument.description,
      required: argument.required,
    })),
    flags: command.options.map((option) => ({ ...describeFlag(option), ...describeType(operation, option) })),
    examples,
  }
  if (operation === undefined) return described
  const { access, endpoint, output } = operation
  return {
    ...described,
    permissions: access.permissions,
    needs_one_permission: access.isAnyEnough === true,
    audience: access.owner !== undefined ? 'owner' : endpoint === undefined ? 'command' : 'everybody',
    ...omitUndefined({
      http: endpoint && `${endpoint.method} ${endpoint.path}`,
      // Each component schema is repeated in place, because this output has no list of components for references.
      output:
        output &&
        toJsonSchema(
          JSON.parse(JSON.stringify(output, (name, value) => (name === 'component' ? undefined : value))),
        ),
    }),
  }
}

function namesOf({ short, long }: Option): string[] {
  return [short, long].filter((name) => name !== undefined && name !== null)
}

function describeFlag(option: Option): object {
  const { required, optional, description, argChoices } = option
  const type = required || optional ? 'string' : 'boolean'
  return { names: namesOf(option), type, description, ...omitUndefined({ values: argChoices }) }
}

function describeType(operation: RegisteredOperation | undefined, option: Option): object {
  const names = namesOf(option)
  const flags = operation === undefined ? [] : listFlags(operation)
  const flag = flags.find(({ name }) => names.includes(name) || names.includes(name.replace('--', '--no-')))
  if (flag === undefined) return {}
  const { isRequired, shape, schema } = flag
  const { type = 'any', ...rest } = toJsonSchema(schema)
  return { ...rest, type, required: isRequired, repeatable: shape === 'list' || shape === 'map' }
}

export function describeTopic(name: string, program: Command): string | undefined {
  if (name === 'flags') return describeFlags(program)
  if (name === 'exit-codes') return describeExitCodes()
  if (name === 'environment') return describeEnvironment()
  if (!TOPIC_NAMES.includes(name)) return undefined
  return readFileSync(findFixture(`help/${name}.txt`), 'utf8').trimEnd()
}

function describeFlags(program: Command): string {
  const helper = program.createHelp()
  const rows = program.options.map(
    (option) => `  ${option.flags.padEnd(30)}  ${helper.optionDescription(option)}`,
  )
  return `These flags may stand anywhere in a command:

${rows.join('\n')}

If a flag is not given, its variable applies: coffer help environment

Examples:
  $ coffer token list -o ndjson --fields id,type
  $ coffer vault status --vault .coffer-demo`
}

const EXIT_MEANINGS: Record<number, string> = {
  0: 'done',
  1: 'internal error, failure of the disk, or a check that failed',
  2: 'usage or validation',
  3: 'not found',
  4: 'not permitted, or not authenticated',
  5: 'conflict with existing data',
  6: 'vault locked, missing, exposed, of another format, or wrong passphrase',
  7: 'vault damaged',
  8: 'reactor failed',
  9: 'server unreachable, busy, or limiting the rate',
  10: 'A scan found values of tokens in plaintext',
  11: 'A tenant differs from a seed',
  12: 'Answers of a server differ from the cases',
  130: 'interrupted',
}

function describeExitCodes(): string {
  const rows = Object.entries(EXIT_MEANINGS).map(([exit, meaning]) => {
    const codes = Object.entries(ERRORS).filter(([, entry]) => entry.exit === Number(exit))
    const names = codes.map(([code]) => code.replaceAll('_', '-')).join(', ')
    return `  ${exit.padStart(3)}  ${meaning}${names && ` (${names})`}`
  })
  return `${['Exit codes, with their problem types:', '', ...rows].join('\n')}

An error is a sentence on standard error. With -o json, or if COFFER_OUTPUT is json, it is a JSON object.

Examples:
  $ coffer token get nobody || test $? = 3
  $ coffer token get nobody -o json 2>&1 | grep -o urn:coffer:problem:not-found`
}

function describeEnvironment(): string {
  const rows = ALL_SETTINGS.map(
    ({ word, variable, description }) => `  ${variable.padEnd(27)} ${word.padEnd(22)} ${description}`,
  )
  return `A flag overrides its variable:

${rows.join('\n')}

Other variables:

  COFFER_CONTROL_KEY          the key of the control plane of --url, instead of COFFER_API_KEY; for serve, the key that other machines send
  COFFER_LOG_SINK_TOKEN       for serve --log-sink with an HTTP address: sent as Authorization: Bearer
  PAGER                       shows help on a terminal
  NO_COLOR                    disable colours
  XDG_CONFIG_HOME             the parent of the directory coffer/ with the key files; default ~/.config

Examples:
  $ COFFER_OUTPUT=ndjson COFFER_FIELDS=id,type coffer token list
  $ COFFER_VAULT=.coffer-demo coffer vault status`
}
