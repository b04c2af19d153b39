import { quoteWord } from '../../domain/text/quote-word.js'
import { ALL_SETTINGS, SETTINGS } from '../../global-flags.js'
import type { Args, CommandOption, Options } from '../context.js'
import { keyOf } from '../input/flags.js'

/** The addresses of a store and of a server are not repeated, because an address may contain a password. */
const GLOBAL = ALL_SETTINGS.filter((setting) => setting !== SETTINGS.store && setting !== SETTINGS.url)

interface Given {
  readonly command: string
  readonly args: Args
  readonly options: Options
  readonly own: readonly CommandOption[]
}

/**
 * Returns the given command and the words of `more`, as text to paste. An option in `more` replaces the same option of
 * the given command.
 */
export function repeatCommand({ command, args, options, own }: Given, more: readonly string[]): string {
  const words = args.filter((arg) => arg !== undefined).map(quoteWord)
  const known = [...own.map(([flag]) => longOf(flag)), ...GLOBAL.map(({ word }) => word)]
  const flags = known.filter((flag) => !more.includes(flag))
  return [command, ...words, ...flags.flatMap((flag) => repeatFlag(flag, options)), ...more].join(' ')
}

function longOf(flag: string): string {
  return /--[a-z-]+/.exec(flag)![0]
}

function repeatFlag(flag: string, options: Options): string[] {
  const isNegated = flag.startsWith('--no-') && options[keyOf(flag.slice('--no-'.length))] === false
  if (isNegated) return [flag]
  const values = [options[keyOf(flag.slice(2))] ?? []].flat().filter((value) => value !== false)
  return values.map((value) => (value === true ? flag : `${flag} ${quoteWord(String(value))}`))
}
