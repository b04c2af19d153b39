/** The long runs: `npm run test:soak`. Each prints what it saw and fails the whole when that is not as it must be. */
import { soakHttp } from './http/soak.js'

const RUNS: readonly [name: string, run: () => Promise<string[]>][] = [['http', soakHttp]]

for (const [name, run] of RUNS) {
  console.log(`${name}:`)
  const faults = await run()
  for (const fault of faults) console.error(`${name}: ${fault}`)
  if (faults.length > 0) process.exitCode = 1
}
