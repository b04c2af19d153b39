import type { Turns } from '../../domain/turns.js'

/** Yields the items in order. Other requests get their turn after every `count` items. */
export async function* inTurns<T>(
  items: Iterable<T> | AsyncIterable<T>,
  count: number,
  turns: Turns,
): AsyncGenerator<T> {
  let given = 0
  for await (const item of items) {
    yield item
    if (++given % count === 0) await turns.next()
  }
}
