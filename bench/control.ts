/**
 * Measures the work that test suites wait for: starting a server in this process, and resetting and forking a vault
 * of 1,000 tokens. Argument: rounds.
 */
import { openTestVault, type Seed, startServer } from '../src/index.js'

const rounds = Number(process.argv[2] ?? 15)
const seed: Seed = { tokens: Array.from({ length: 1000 }, (_, index) => ({ type: 'token', data: index })) }

async function time(
  name: string,
  goalMs: number,
  work: () => Promise<() => Promise<unknown>>,
): Promise<void> {
  const taken: number[] = []
  for (let round = 0; round < rounds; round++) {
    const started = performance.now()
    const end = await work()
    taken.push(performance.now() - started)
    await end()
  }
  const median = taken.sort((a, b) => a - b)[Math.floor(rounds / 2)]!
  console.log(`${name.padEnd(44)} ${median.toFixed(1)} ms (goal ${goalMs} ms, best ${taken[0]!.toFixed(1)})`)
}

await time('server in this process, no seed', 50, async () => {
  const server = await startServer()
  return () => server.stop()
})
const vault = await openTestVault({ seed })
await time('reset, 1,000 tokens', 5, async () => {
  await vault.control.reset()
  return () => vault.ask('token create', { type: 'token', data: 1 })
})
await time('fork, 1,000 tokens', 5, async () => {
  const fork = await vault.control.fork()
  return () => fork.stop()
})
await vault.stop()
