/** Several ids for one command: as arguments, or on the lines of standard input. */
import type { RegisteredOperation } from '../../framework/registry.js'
import { decodeChunks, splitTextLines } from '../bulk/rows.js'
import type { InputReader } from './input.js'
import { takesMany } from './options.js'

export interface Ids {
  /** The property that they are values of. */
  property: string
  /** The words of a command with one id. */
  words: readonly (string | undefined)[]
  all: AsyncIterable<string>
  /** How many; undefined for those on standard input. */
  count: number | undefined
}

/** The ids of a command with several, or with `-`; undefined for any other. @throws CofferError `usage` */
export async function readIds(
  { input }: { input: InputReader },
  definition: RegisteredOperation,
  words: readonly (string | undefined)[],
): Promise<Ids | undefined> {
  const { positionals } = definition
  const fixed = words.slice(0, positionals.length - 1)
  const given = words.slice(positionals.length - 1).filter((word) => word !== undefined)
  const isRead = given.length === 1 && given[0] === '-'
  if (!takesMany(definition) || (given.length < 2 && !isRead)) return undefined
  const property = positionals.at(-1)!
  // What is gathered once for all ids needs some id; each takes its place.
  const first = { property, words: [...fixed, isRead ? 'id' : given[0]!] }
  if (!isRead) return { ...first, all: each(given), count: given.length }
  const { chunks } = await input.openStream('-', `<${property}>`)
  return { ...first, all: readLines(chunks), count: undefined }
}

async function* each(texts: readonly string[]): AsyncGenerator<string> {
  yield* texts
}

async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const split = splitTextLines()
  for await (const text of decodeChunks(chunks, 'standard input'))
    for (const line of split(text, false)) yield line.text.trim()
  for (const line of split('', true)) yield line.text.trim()
}
