/** One chain of a log: its records from the newest to the oldest, and whether it is whole. */
import type { LogBlockRecord, LogHeadRecord } from '../../domain/log-record.js'
import { CofferError } from '../../errors.js'
import type { LogCheck } from '../store.js'
import { countIn, describe, type LogFilter, matchesIn } from './log-block.js'
import type { Piece } from './log-merge.js'
import {
  type Chain,
  chainValue,
  createChain,
  headerOf,
  INDEXED,
  type LogRows,
  readEnd,
  readIndex,
} from './log-rows.js'

/** Of the blocks of a chain, newest first. */
export async function* eachHeader(rows: LogRows, chain: Chain) {
  const { blocks, gone } = chain.head
  for (let index = Math.ceil(blocks / INDEXED) - 1; index * INDEXED >= gone - INDEXED + 1; index--) {
    const { headers } = chain.indexes.get(index) ?? (await readIndex(rows, chain, index))
    const first = index * INDEXED
    for (let number = Math.min(blocks, first + INDEXED) - 1; number >= Math.max(gone, first); number--)
      yield {
        header: headers[number - first]!,
        load: () => rows.read<LogBlockRecord>(rows.ids.block(number)),
      }
  }
}

export async function* eachBlock(rows: LogRows, chain: Chain, filter: LogFilter): AsyncGenerator<Piece> {
  for await (const { header, load } of eachHeader(rows, chain))
    yield { from: header.from, to: header.to, matching: countIn(header, filter), load }
}

/** The end of a chain, and then its blocks. */
export async function* eachPiece(
  end: readonly LogBlockRecord[],
  filter: LogFilter,
  blocks?: AsyncIterable<Piece>,
): AsyncGenerator<Piece> {
  for (const part of end.toReversed()) if (part.items.length > 0) yield toPiece(part, filter)
  if (blocks !== undefined) yield* blocks
}

export function toPiece(block: LogBlockRecord, filter: LogFilter): Piece {
  const { from, to } = describe(block, '')
  return { from, to, matching: matchesIn(block, filter).length, load: () => block }
}

/** `rows`: how many it has; parts that were joined included. */
export async function verifyChain(rows: LogRows): Promise<LogCheck & { rows: number }> {
  // Nothing that is remembered: what is stored is to be checked.
  const chain = createChain(rows, await rows.find(rows.ids.head))
  const { head } = chain
  const count = head.count - head.dropped
  let first = head.dropped
  let { start: value } = head
  const broken = () => ({ count, brokenAt: first - head.dropped + 1, rows: rowsOf(head) })
  const follows = (block: LogBlockRecord): boolean => {
    value = chainValue(rows.keys, value, block)
    if (block.first !== first) return false
    first += block.items.length
    return true
  }
  try {
    for (let number = head.gone; number < head.blocks; number++) {
      const header = await headerOf(rows, chain, number)
      const before = first
      const block = await rows.read<LogBlockRecord>(rows.ids.block(number))
      const isNext = follows(block)
      if (isNext && JSON.stringify(describe(block, value)) === JSON.stringify(header)) continue
      first = before
      return broken()
    }
    for (const part of await readEnd(rows, chain)) if (!follows(part)) return broken()
  } catch (error) {
    if (error instanceof CofferError && error.code === 'vault_damaged') return broken()
    throw error
  }
  return first === head.count && value === head.value ? { count, rows: rowsOf(head) } : broken()
}

/** How many rows the chain has, parts that were joined included. */
function rowsOf({ count, blocks, gone, mostParts }: LogHeadRecord): number {
  const indexes = Math.ceil(blocks / INDEXED) - Math.floor(gone / INDEXED)
  return count === 0 ? 0 : 1 + mostParts + (blocks - gone) + indexes
}
