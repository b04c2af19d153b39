/**
 * Measures `/v2/tokens`, the list by cursor, over HTTP. The benchmark compares the hundredth page with the first page,
 * and with the hundredth page of the smallest vault.
 */
import { formatSpread, type Measured, median, printTable, ratiosOf } from './figures.js'
import type { Goal } from './goals.js'
import type { Ready } from './http-server.js'
import { runLoad } from './load.js'

const PAGE_SIZE = 10
const DEEP = 100
const CONNECTIONS = 10

export interface Sized {
  tokens: number
  ready: Ready
}

interface Asked extends Sized, Measured {
  values: number[]
  target: string
}

export async function measurePages(
  servers: readonly Sized[],
  rounds: number,
  seconds: number,
): Promise<Goal[]> {
  const asked: Asked[] = []
  for (const server of servers) {
    const first = `/v2/tokens?size=${PAGE_SIZE}`
    asked.push({ ...server, name: 'first page', target: first, values: [] })
    asked.push({ ...server, name: `page ${DEEP}`, target: await findTarget(server.ready, first), values: [] })
  }
  for (let round = -1; round < rounds; round++)
    for (const each of asked) {
      const perSecond = await measure(each, seconds)
      if (round >= 0) each.values.push(perSecond)
    }
  const [floor] = asked
  printTable(`GET /v2/tokens, ${PAGE_SIZE} tokens in a page, ${CONNECTIONS} connections`, [
    ['', 'tokens', 'a second', 'x first (from–to)'],
    ...asked.map((each) => [
      each.name,
      String(each.tokens),
      median(each.values).toFixed(0),
      formatSpread(ratiosOf(each, floor!)),
    ]),
  ])
  const pairs = servers.map((_, at) => [asked[2 * at]!, asked[2 * at + 1]!] as const)
  return [
    {
      name: '/v2/tokens, hundredth page relative to the first',
      least: 0.9,
      ratios: pairs.map(([first, deep]) => ratiosOf(deep, first)),
    },
    {
      name: '/v2/tokens, hundredth page relative to that of the smallest vault',
      ratios: pairs.map(([, deep]) => ratiosOf(deep, asked[1]!)),
    },
  ]
}

/** Returns the request for the hundredth page, or for the last full page if there are fewer pages. */
async function findTarget({ port, key }: Ready, first: string): Promise<string> {
  let target = first
  for (let page = 2; page <= DEEP; page++) {
    const answer = await fetch(`http://127.0.0.1:${port}${target}`, { headers: { 'svc-api-key': key } })
    const { pagination } = (await answer.json()) as { pagination: { next?: string } }
    if (pagination.next === undefined) break
    target = `${first}&start=${pagination.next}`
  }
  return target
}

async function measure({ ready: { port, key }, target }: Asked, seconds: number): Promise<number> {
  const request = `GET ${target} HTTP/1.1\r\nHost: localhost\r\nSVC-API-KEY: ${key}\r\n\r\n`
  const load = { port, connections: CONNECTIONS, seconds, next: () => request, status: 200 }
  return (await runLoad(load)).perSecond
}
