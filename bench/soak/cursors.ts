/**
 * Measures `/v2/tokens`, the list by cursor, with 1,000, 100,000 and 1,000,000 tokens. The first page, the hundredth
 * page, a middle page and filtered pages must cost the same at each number of tokens. The test measures CPU time in
 * this process, one kind of page after another. Its limits leave room for noise.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFilledVault, openFilledVault } from '../filled-vault.js'

const SIZES = [1_000, 100_000, 1_000_000]
const PAGE = 10
const DEEP = 100
const ROUNDS = 400
/**
 * A page may cost at most this many times its cost with 1,000 tokens, and this many times the cost of the first page.
 */
const MAX_FACTOR = 2

type Input = Record<string, unknown>

async function measure(place: string, tokens: number): Promise<Record<string, number>> {
  const app = await openFilledVault(await createFilledVault(place, tokens), 'server')
  const ask = async (input: Input): Promise<{ pagination: { next?: string } }> =>
    (await app.ask({ operation: 'token list-after', input, as: { reveal: false } })).result as never
  const walk = async (pages: number, size: number): Promise<string | undefined> => {
    let start: string | undefined
    for (let page = 1; page < pages; page++)
      start = (await ask({ size, ...(start && { start }) })).pagination.next
    return start
  }
  const inputs: Record<string, Input> = {
    first: { size: PAGE },
    hundredth: { size: PAGE, start: await walk(DEEP, PAGE) },
    middle: { size: PAGE, start: await walk(Math.max(2, tokens / 200), 100) },
    metadata: { size: PAGE, metadata: { customer: '7' } },
    'type and container': { size: PAGE, type: 'token', container: '/general/' },
  }
  const spent: Record<string, number> = {}
  for (let round = -50; round < ROUNDS; round++)
    for (const [name, input] of Object.entries(inputs)) {
      const before = process.cpuUsage()
      await ask(input)
      const { user, system } = process.cpuUsage(before)
      if (round >= 0) spent[name] = (spent[name] ?? 0) + user + system
    }
  await app.close()
  return Object.fromEntries(Object.entries(spent).map(([name, sum]) => [name, Math.round(sum / ROUNDS)]))
}

const place = mkdtempSync(join(tmpdir(), 'coffer-cursors-'))
try {
  let few: Record<string, number> | undefined
  for (const tokens of SIZES) {
    const cost = await measure(place, tokens)
    few ??= cost
    console.log(`${tokens} tokens, CPU µs for each page: ${JSON.stringify(cost)}`)
    for (const [name, micros] of Object.entries(cost))
      if (micros > MAX_FACTOR * few[name]! || (name !== 'metadata' && micros > MAX_FACTOR * cost.first!)) {
        console.log(`FAILED: ${name} at ${tokens} tokens takes more than ${MAX_FACTOR} times as long`)
        process.exitCode = 1
      }
  }
} finally {
  rmSync(place, { recursive: true, force: true })
}
