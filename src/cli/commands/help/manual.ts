/** Formats manual pages with the macros of man(7). */
import type { Argument, Command, Option } from 'commander'
import { VERSION } from '../../../version.js'

export type FindDetails = (name: string) => { details?: string; examples: readonly string[] } | undefined

export function formatManual(command: Command, find: FindDetails, topics: Record<string, string> = {}) {
  const name = nameOf(command)
  const isProgram = command.parent === null
  const commands = command.commands.map((each) => {
    const page = `${nameOf(each).replaceAll(' ', '-')}(1)`
    return `.TP\n.B ${escapeRoff(page)}\n${escapeRoff(each.description())}`
  })
  return [
    `.TH ${name.toUpperCase().replaceAll(' ', '-')} 1 "" "coffer ${VERSION}"`,
    `.SH NAME\n${escapeRoff(`${name.replaceAll(' ', '-')} - ${command.description()}`)}`,
    `.SH SYNOPSIS\n.B ${escapeRoff(name)}\n${escapeRoff(command.usage())}`,
    ...(isProgram ? ['.SH COMMANDS', ...commands] : ['.SH DESCRIPTION', ...describe(command, find)]),
    `.SH OPTIONS\n${isProgram ? listTerms(command.options) : 'See coffer(1) for the options of all commands.'}`,
    ...Object.entries(topics).map(([title, text]) => `.SH ${title.toUpperCase()}\n${verbatim(text)}`),
    '',
  ].join('\n')
}

function describe(command: Command, find: FindDetails): string[] {
  const name = nameOf(command)
  const { details, examples = [] } = find(name) ?? {}
  const args = command.registeredArguments
  return [
    `.SS ${escapeRoff(`${name} ${command.usage()}`)}`,
    escapeRoff(command.description()),
    ...(details === undefined ? [] : [`.PP\n${verbatim(details)}`]),
    listTerms([...args, ...command.options]),
    ...(examples.length === 0 ? [] : [`.PP\nExamples:\n${verbatim(examples.join('\n'))}`]),
    ...command.commands.flatMap((each) => describe(each, find)),
  ].filter((part) => part !== '')
}

function listTerms(terms: readonly (Option | Argument)[]): string {
  const shown = terms.filter((term) => !('hidden' in term && term.hidden))
  const lines = shown.map((term) => {
    const word = 'flags' in term ? term.flags : term.name()
    return `.TP\n.B ${escapeRoff(word)}\n${escapeRoff(term.description)}`
  })
  return lines.join('\n')
}

function verbatim(text: string): string {
  return `.nf\n${escapeRoff(text)}\n.fi`
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}

/** Escapes text, so that roff does not read a line as a request, and does not change hyphens. */
function escapeRoff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^(?=[.'])/gm, '\\&')
}
