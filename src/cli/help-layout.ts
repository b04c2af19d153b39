/** The layout of help, and the wording of commander's messages. */
import type { Command, Help, Option } from 'commander'
import type { RegisteredOperation } from '../framework/registry.js'
import { fold, foldRow, joinLines } from './output/display.js'
import { DEFAULT_COLUMNS } from './output/terminal.js'
import type { TerminalCommand } from './task.js'

export const TOPIC_NAMES = ['access-rules', 'search', 'expressions', 'exit-codes', 'environment'] as const

export const TOPICS = `Start here:
  $ coffer init                    create a vault in this directory
  $ coffer token create --help     store a value

Topics: coffer help ${TOPIC_NAMES.join(' | ')}`

/** Details, examples, permissions and the HTTP request of an operation. */
export function describeOperation(definition: RegisteredOperation): string {
  const { permissions, needsOnePermission, onlyFor, endpoint, audience } = definition
  const key = onlyFor === undefined ? 'any valid key' : `the key of a ${onlyFor} application`
  const needed =
    permissions.length === 0 ? `none; ${key}` : permissions.join(needsOnePermission ? ' or ' : ', ')
  return [
    ...describeExamples(definition),
    '',
    ...(audience === 'owner' ? ['For the owner of the vault.'] : [`Permissions: ${needed}`]),
    ...(endpoint === undefined ? [] : [`HTTP:        ${endpoint.method} ${endpoint.path}`]),
  ].join('\n')
}

/** Describes a command and its variants. */
export function describeVariants(definition: RegisteredOperation, forms: readonly RegisteredOperation[]) {
  const others = forms.map((other) => {
    return `\n\nWith --${other.form?.flag}: ${other.summary}\n${describeOperation(other)}`
  })
  return describeOperation(definition) + others.join('')
}

/** Details and examples of a command without an operation. */
export function describeTerminalCommand(command: TerminalCommand): string {
  return describeExamples(command).join('\n')
}

function describeExamples({ details, examples }: Pick<TerminalCommand, 'details' | 'examples'>): string[] {
  const lines = ['Examples:', ...examples.map((line) => `  $ ${line}`)]
  return details === undefined ? lines : [joinLines(details), '', ...lines]
}

/** Lists commands before options; global options are in the help of the program only. */
export function layOutHelp(command: Command, help: Help): string {
  const commands = help.visibleCommands(command)
  const termWidth = help.padWidth(command, help)
  const width = help.helpWidth ?? DEFAULT_COLUMNS
  const row = (term: string, text: string) => foldRow(`  ${term.padEnd(termWidth)}  `, text, width)
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
  const besides = command.parent === null ? [] : [`Global options: coffer --help`, '']
  return [
    `Usage: ${help.commandUsage(command)}`,
    '',
    fold(command.description(), width),
    '',
    ...sections,
    ...besides,
  ].join('\n')
}

/** Whether the command also has this option with the prefix `other` instead of `own`. */
function isTwin({ options }: Command, { long }: Option, own: string, other: string): boolean {
  return long?.startsWith(own) === true && options.some((each) => each.long === long.replace(own, other))
}

function termOf(command: Command): string {
  const words = command.registeredArguments.map((argument) => {
    const name = argument.variadic ? `${argument.name()}...` : argument.name()
    return argument.required ? `<${name}>` : `[${name}]`
  })
  return [command.name(), ...words].join(' ')
}

/** Commander's message as one line without its prefix, with its suggestion, else with that of `advise`. */
export function cleanMessage(text: string, advise: (message: string) => string): string {
  const line = text
    .trim()
    .replace(/^error: /, '')
    .replaceAll(/\s*\n\s*/g, ' ')
    // The value of the option may be secret.
    .replace(/^unknown option '(--[^=']*|-[^-]).*'/, "unknown option '$1'")
  const message = `${line.charAt(0).toUpperCase()}${line.slice(1)}`
  // The arguments themselves may be secret.
  if (line.startsWith('too many arguments')) return `${message} ${advise(message)}`.trimEnd()
  if (!/^unknown (command|option)/.test(line)) return message.replace(/[^.?)]$/, '$&.')
  const bare = message.replace(/ \(Did you mean .*/, '')
  const advice = advise(bare)
  // Similar letters say less than another program's word for the same.
  const isSure = line.startsWith('unknown command') && !advice.startsWith('See:')
  return bare !== message && !isSure ? message : `${bare}. ${advice}`
}
