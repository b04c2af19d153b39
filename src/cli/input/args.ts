/** Positional arguments of a command: the required ones are asked for, and the last may be several ids. */
import { CofferError, usage } from '../../errors.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import { decodeChunks, splitTextLines } from '../bulk/rows.js'
import type { Terminal } from '../output/terminal.js'
import type { ArgSpecs, Args } from '../task.js'
import type { InputReader } from './input.js'
import { takesMany } from './options.js'

const REQUIRED = /^<(.*?)(?:\.\.\.)?>$/
/** The limit of ids on standard input, in characters: more than a million UUIDs. */
const MOST_CHARACTERS = 64 * 1024 * 1024

/** Asks for the value of an argument. */
export type AskArg = (name: string, description: string) => Promise<string>

/** `ask` is undefined where nobody can be asked. @throws CofferError `usage` for the first argument that is missing */
export async function completeArgs(
  command: string,
  specs: ArgSpecs,
  args: Args,
  ask: AskArg | undefined,
): Promise<Args> {
  const complete = [...args]
  for (const [at, [spec, description]] of specs.entries()) {
    const name = REQUIRED.exec(spec)?.[1]
    if (name === undefined || complete[at] !== undefined) continue
    if (ask === undefined) throw usage(`Missing required argument '${name}'. See: coffer ${command} --help`)
    // Properties have underscores instead of hyphens.
    complete[at] = await ask(name.replaceAll('-', '_'), description)
  }
  return complete
}

/** Asks for an argument of a command without an operation. */
export function askArgAt(terminal: Terminal): AskArg | undefined {
  if (!terminal.mayPrompt) return undefined
  return async (name) => {
    const { ask } = await import('./prompt.js')
    return ask(terminal, { message: name, validate: (answer) => answer !== '' || 'A value is required.' })
  }
}

export interface Ids {
  /** The property that the ids are values of. */
  property: string
  all: readonly string[]
}

/**
 * The ids of a command with several, or with `-`; undefined for any other command. Ids on standard input are read to the
 * end before the vault is opened, because the command that writes them may wait for the same vault.
 * @throws CofferError `usage`, `too_large`
 */
export async function readIds(
  input: InputReader,
  definition: RegisteredOperation,
  args: Args,
): Promise<Ids | undefined> {
  const { positionals } = definition
  const given = args.slice(positionals.length - 1).filter((arg) => arg !== undefined)
  const isRead = given.length === 1 && given[0] === '-'
  if (!takesMany(definition) || (given.length < 2 && !isRead)) return undefined
  const property = positionals.at(-1)!
  if (!isRead) return { property, all: given }
  const { chunks } = await input.openStream('-', `<${property}>`)
  const all: string[] = []
  const split = splitTextLines()
  let left = MOST_CHARACTERS
  const take = (text: string, isLast: boolean) => {
    left -= text.length
    if (left < 0) throw new CofferError('too_large', 'Standard input has more than 64 MiB of ids.')
    for (const line of split(text, isLast)) all.push(line.text.trim())
  }
  for await (const text of decodeChunks(chunks, 'standard input')) take(text, false)
  take('', true)
  return { property, all }
}
