import type { Turns } from '../../domain/turns.js'

/** Gives the items in order. Other requests have their turn after every `count` of them. */
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
