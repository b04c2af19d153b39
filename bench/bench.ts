/**
 * `npm run bench [part [argument…]]…` runs all parts, or the named parts with their arguments. Each part runs in a
 * separate process. Every figure is a ratio to a floor that was measured in the same run. A slow result
 * never makes a part fail.
 */
import { spawnSync } from 'node:child_process'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'

/** The parts in the order in which they run. With these default arguments, all parts together take some minutes. */
const PARTS: Record<string, readonly string[]> = {
  startup: ['15', '1,1000,100000'],
  crypto: ['15', '1024'],
  encrypted: ['15'],
  vault: ['7', '0,1000,100000'],
  access: ['all'],
  http: ['3', '2', '1000,10000', '100000', '8'],
  fairness: ['3', '4,16,50,200'],
  postgres: ['3', '4', '40000'],
  reactor: ['7'],
  proxy: ['3', '2'],
  control: ['15'],
}

const asked = readWords(process.argv.slice(2))
if (asked === undefined) {
  console.error(`The first word must be a part. The parts are ${Object.keys(PARTS).join(', ')}.`)
  process.exitCode = 2
} else {
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}`)
  const failed = asked.filter(({ part, words }) => !runPart(part, words)).map(({ part }) => part)
  if (failed.length > 0) console.error(`Failed: ${failed.join(', ')}`)
  process.exitCode = failed.length === 0 ? 0 : 1
}

/**
 * Parses the words of the command line. If a word names no part, the word is an argument of the part before it. Returns
 * undefined if the first word names no part.
 */
function readWords(words: readonly string[]): { part: string; words: readonly string[] }[] | undefined {
  if (words.length === 0) return Object.entries(PARTS).map(([part, defaults]) => ({ part, words: defaults }))
  const asked: { part: string; words: string[] }[] = []
  for (const word of words) {
    if (Object.hasOwn(PARTS, word)) asked.push({ part: word, words: [] })
    else if (asked.length === 0) return undefined
    else asked.at(-1)!.words.push(word)
  }
  return asked.map(({ part, words }) => ({ part, words: words.length > 0 ? words : PARTS[part]! }))
}

function runPart(part: string, words: readonly string[]): boolean {
  const load = loadavg()[0]!.toFixed(1)
  console.log(`\n# ${part} ${words.join(' ')} (load before: ${load})`)
  const file = fileURLToPath(new URL(`${part}.js`, import.meta.url))
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env
  return spawnSync(process.execPath, [file, ...words], { stdio: 'inherit', env }).status === 0
}
