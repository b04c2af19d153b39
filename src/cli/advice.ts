/** Finds the command that a misspelled line probably means. Pure. */
import type { RegisteredOperation, Registry } from '../framework/registry.js'
import { findPresentation } from './commands/presentations.js'
import { TERMINAL_COMMANDS } from './commands/terminal-commands.js'
import { listFlags } from './input/options.js'

/** The verbs that other programs have for ours. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['add', 'create'],
  ['edit', 'update'],
  ['find', 'search'],
  ['ls', 'list'],
  ['new', 'create'],
  ['remove', 'delete'],
  ['rm', 'delete'],
  ['set', 'update'],
  ['show', 'get'],
  ['view', 'get'],
])

/** Advice on an unknown command or option; `message` is commander's. */
export function adviseOnLine(message: string, argv: readonly string[], registry: Registry): string {
  const words = argv.filter((word) => !word.startsWith('-'))
  if (message.startsWith('Too many arguments'))
    return argv.includes('#')
      ? 'The shell passed # and what follows as arguments. Leave the comment out; in zsh: setopt interactive_comments'
      : ''
  if (!message.startsWith('Unknown command')) {
    const name = [3, 2].map((count) => words.slice(0, count).join(' ')).find((each) => registry.find(each))
    const flags = name === undefined ? [] : flagsOf(registry.find(name)!)
    const alone = TERMINAL_COMMANDS.find((each) => `${words.join(' ')} `.startsWith(`${each.name} `))
    const command = name ?? alone?.name
    const see = command === undefined ? 'See: coffer --help' : `See: coffer ${command} --help`
    return flags.length === 0 ? see : `coffer ${name} takes ${flags.join(', ')}. ${see}`
  }
  const [first = '', second = ''] = words.map((word) => SYNONYMS.get(word) ?? word)
  const singular = second.replace(/s$/, '')
  const swapped = [`${first} ${second}`, `${singular} ${first}`].find((each) => registry.find(each))
  if (swapped !== undefined) return `Did you mean coffer ${swapped}?`
  const nouns = registry.nouns.filter(({ name }) => registry.find(`${name} ${first}`)).map(({ name }) => name)
  if (nouns.length > 0) return `The noun comes first: coffer ${nouns.join(` ${first}, coffer `)} ${first}.`
  const noun = registry.nouns.find(({ name }) => name === first)
  return noun === undefined ? 'See: coffer --help' : `See: coffer ${first} --help`
}

/** Those of its input, unless its command has arguments of its own, and those that the command adds. */
function flagsOf(definition: RegisteredOperation): string[] {
  const { arguments: own, options = [] } = findPresentation(definition)
  const ofInput = own === undefined ? listFlags(definition).map(({ name }) => name) : []
  return [...ofInput, ...options.map(([flag]) => /--[\w-]+/.exec(flag)![0])]
}
