/** Gives the items in order. Other requests have their turn after every `count` of them. */
export async function* inTurns<T>(items: Iterable<T> | AsyncIterable<T>, count: number): AsyncGenerator<T> {
  let given = 0
  for await (const item of items) {
    yield item
    if (++given % count === 0) await new Promise(setImmediate)
  }
}
