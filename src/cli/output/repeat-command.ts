import { quoteWord } from '../../domain/text/quote-word.js'
import { ALL_SETTINGS, SETTINGS } from '../../global-flags.js'
import type { Args, CommandOption, Options } from '../context.js'
import { keyOf } from '../input/flags.js'

/** The global flags. The address of a store or a server is left out, because it might have a password. */
const GLOBAL = ALL_SETTINGS.filter((setting) => setting !== SETTINGS.store && setting !== SETTINGS.url)

interface Given {
  /** The command, with its program. */
  readonly command: string
  readonly args: Args
  readonly options: Options
  /** The options of the command itself. */
  readonly own: readonly CommandOption[]
}

/** The command to paste: as it was given, with `more` words. An option in `more` takes the place of the one that was given. */
export function repeatCommand({ command, args, options, own }: Given, more: readonly string[]): string {
  const words = args.filter((arg) => arg !== undefined).map(quoteWord)
  const known = [...own.map(([flag]) => longOf(flag)), ...GLOBAL.map(({ word }) => word)]
  const flags = known.filter((flag) => !more.includes(flag))
  return [command, ...words, ...flags.flatMap((flag) => repeatFlag(flag, options)), ...more].join(' ')
}

/** `--port` of `-p, --port <number>`. */
function longOf(flag: string): string {
  return /--[a-z-]+/.exec(flag)![0]
}

function repeatFlag(flag: string, options: Options): string[] {
  const isNegated = flag.startsWith('--no-') && options[keyOf(flag.slice('--no-'.length))] === false
  if (isNegated) return [flag]
  const values = [options[keyOf(flag.slice(2))] ?? []].flat().filter((value) => value !== false)
  return values.map((value) => (value === true ? flag : `${flag} ${quoteWord(String(value))}`))
}
