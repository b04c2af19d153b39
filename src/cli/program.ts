import { type Command, CommanderError } from 'commander'
import { quoteWord } from '../domain/text/quote-word.js'
import { usage } from '../errors.js'
import type { Registry } from '../framework/registry.js'
import { CommandTree, hasCommand, type ParsedLine } from './command-tree.js'
import { TERMINAL_COMMANDS, TERMINAL_NOUNS } from './commands/terminal-commands.js'
import { DEFAULT_COLUMNS } from './output/terminal.js'
import type { TerminalCommand } from './task.js'

/**
 * `argv`: without node and the script. `text`: the requested help or version, or an empty text if the help of the
 * program is requested.
 * @throws CofferError `usage`
 */
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

const SYNONYMS: Readonly<Record<string, string>> = {
  ...{ rm: 'delete', remove: 'delete', ls: 'list', show: 'get', read: 'get', find: 'search', add: 'create' },
  ...{ new: 'create', edit: 'update', rotate: 'rekey', audit: 'log list', users: 'member list' },
}
const WHERE_DATA_IS = 'Give the data on standard input with --data -, or as --data @FILE.'

const SUGGESTION = /(?<=^Unknown option '--([^']*)') \(Did you mean --([^?]*)\?\)$/
const WHO_REVEALS =
  'Commands that write always print masked data. To see plaintext: coffer token get ID --reveal'

function isOpposite(one: string, other: string): boolean {
  return one === `no-${other}` || other === `no-${one}`
}

/** Makes one line of commander's message, and adds a suggestion or the command for help. */
function explainMessage(text: string, argv: readonly string[], registry: Registry): string {
  const line = text
    .trim()
    .replace(/^error: ./, (start) => start.slice(-1).toUpperCase())
    .replaceAll(/\s*\n\s*/g, ' ')
    // Removes the value of the option, because the value may be secret.
    .replace(/^Unknown option '(--[^=']*|-[^-]).*'/, "Unknown option '$1'")
    .replace(SUGGESTION, (whole, option, near) => (isOpposite(option, near) ? '' : whole))
  const words = argv.filter((word) => !word.startsWith('-'))
  const [first = '', second = ''] = words
  if (line.startsWith("Too many arguments for 'create'") && first === 'token')
    return `${line} ${WHERE_DATA_IS}`
  if (line.startsWith('Too many arguments')) {
    const rule = findUnquotedRule(argv)
    if (rule !== undefined) return `${line} Put the rule between quotes: --rule ${quoteWord(rule)}`
  }
  if (line === "Unknown option '--reveal'") return `${line}. ${WHO_REVEALS}`
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

function findUnquotedRule(argv: readonly string[]): string | undefined {
  const given = argv.slice(argv.indexOf('--rule') + 1)
  const end = given.findIndex((word) => word.startsWith('-'))
  const words = end === -1 ? given : given.slice(0, end)
  return argv.includes('--rule') && words.length > 1 ? words.join(' ') : undefined
}

export function describeCommand(registry: Registry, words: readonly string[], columns: number): string {
  // Parsing an unknown command throws an error with a suggestion.
  parseLine(words, registry, columns)
  const parsed = parseLine([...words, '--help'], registry, columns)
  return 'text' in parsed ? parsed.text : ''
}

export function findTerminalCommand(name?: string): TerminalCommand | undefined {
  return TERMINAL_COMMANDS.find((command) => command.name === name)
}

export function listSummaries(registry: Registry): { name: string; summary: string }[] {
  const nouns = Object.entries(TERMINAL_NOUNS).map(([name, summary]) => ({ name, summary }))
  return [...registry.nouns, ...nouns, ...TERMINAL_COMMANDS]
}

export function listCommands(registry: Registry): Command {
  const nouns = [...registry.nouns.map(({ name }) => name), ...Object.keys(TERMINAL_NOUNS)]
  return new CommandTree(registry, nouns, DEFAULT_COLUMNS).program
}
