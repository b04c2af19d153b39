/** Several ids for one command: as arguments, or on the lines of standard input. */
import { CofferError } from '../../errors.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import { decodeChunks, splitTextLines } from '../bulk/rows.js'
import type { Words } from '../context/task.js'
import type { InputReader } from './input.js'
import { takesMany } from './options.js'

/** Of ids on standard input, in characters: more than a million UUIDs. */
const MOST_CHARACTERS = 64 * 1024 * 1024

export interface Ids {
  /** The property that they are values of. */
  property: string
  /** The words of a command with one id. */
  words: Words
  all: readonly string[]
}

/**
 * The ids of a command with several, or with `-`; undefined for any other. Those on standard input are read to the end,
 * before the vault is opened: what writes them may be a command that waits for the same vault.
 * @throws CofferError `usage`, `too_large`
 */
export async function readIds(
  { input }: { input: InputReader },
  definition: RegisteredOperation,
  words: Words,
): Promise<Ids | undefined> {
  const { positionals } = definition
  const fixed = words.slice(0, positionals.length - 1)
  const given = words.slice(positionals.length - 1).filter((word) => word !== undefined)
  const isRead = given.length === 1 && given[0] === '-'
  if (!takesMany(definition) || (given.length < 2 && !isRead)) return undefined
  const property = positionals.at(-1)!
  // What is gathered once for all ids needs some id; each takes its place.
  const first = { property, words: [...fixed, isRead ? 'id' : given[0]!] }
  if (!isRead) return { ...first, all: given }
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
  return { ...first, all }
}
