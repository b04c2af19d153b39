/** A request with the times at which it was sent and answered, in any unit. */
export interface Exchange {
  sentAt: number
  answeredAt: number
}

/**
 * For each request, counts the later requests that were answered earlier. The function returns the largest of these
 * counts. The algorithm needs time in n log n, because it uses a Fenwick tree over the order of the answers.
 */
export function countOvertaken(exchanges: readonly Exchange[]): number {
  const byAnswer = exchanges.toSorted((a, b) => a.answeredAt - b.answeredAt)
  const rankOf = new Map(byAnswer.map((exchange, rank) => [exchange, rank]))
  const tree = new Uint32Array(exchanges.length + 1)
  let worst = 0
  for (const exchange of exchanges.toSorted((a, b) => b.sentAt - a.sentAt)) {
    const rank = rankOf.get(exchange)!
    let answeredEarlier = 0
    for (let at = rank; at > 0; at -= at & -at) answeredEarlier += tree[at]!
    worst = Math.max(worst, answeredEarlier)
    for (let at = rank + 1; at < tree.length; at += at & -at) tree[at]!++
  }
  return worst
}
