/**
 * Imports and exports a million rows with the real program. The memory of the program must not grow: its peak in the
 * second half may be only a little higher than its peak in the first half. The variable `COFFER_SOAK_ROWS` sets another
 * number of rows.
 */
import { spawn } from 'node:child_process'
import { createReadStream, createWriteStream, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createMachine, PROGRAM } from '../../test/support/process.js'

const ROWS = Number(process.env.COFFER_SOAK_ROWS ?? 1_000_000)
/**
 * The peak of the second half may exceed the peak of the first half by this many MB, because two things grow: the
 * caches of index blocks, and the directory of tables.
 */
const GROWTH_MB = 96
const SAMPLE_MS = 200

const machine = await createMachine()
let failed = false

function check(isRight: boolean, what: string): void {
  console.log(`${isRight ? 'ok' : 'FAILED'}: ${what}`)
  failed ||= !isRight
}

/** Runs a command. Returns the peak memory of the command in MB for each half of its time. */
async function measure(
  words: readonly string[],
): Promise<{ code: number | null; peaks: number[]; seconds: number }> {
  const began = performance.now()
  const child = spawn(process.execPath, [PROGRAM, ...words], {
    cwd: machine.place,
    env: machine.env,
    stdio: 'inherit',
  })
  const samples: number[] = []
  const timer = setInterval(() => {
    try {
      const [, kilobytes = '0'] =
        /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? []
      samples.push(Number(kilobytes) / 1024)
    } catch {
      // The memory cannot be read, because the process has just ended.
    }
  }, SAMPLE_MS)
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  clearInterval(timer)
  const middle = samples.length >> 1
  const peaks = [samples.slice(0, middle), samples.slice(middle)].map((half) =>
    Math.round(Math.max(0, ...half)),
  )
  return { code, peaks, seconds: (performance.now() - began) / 1000 }
}

async function run(name: string, words: readonly string[]): Promise<void> {
  const { code, peaks, seconds } = await measure(words)
  const [first = 0, second = 0] = peaks
  console.log(
    `${name}: ${seconds.toFixed(1)} s, ${Math.round(ROWS / seconds)} rows/s, peaks ${peaks.join(' and ')} MB`,
  )
  check(code === 0, `${name} succeeded`)
  check(second <= first + GROWTH_MB, `${name} grew by at most ${GROWTH_MB} MB in its second half`)
}

async function countLines(path: string): Promise<number> {
  let count = 0
  for await (const _ of createInterface({ input: createReadStream(path) })) count++
  return count
}

try {
  const file = createWriteStream(join(machine.place, 'rows.ndjson'))
  for (let at = 0; at < ROWS; at++) {
    const row = {
      id: `soak-${at}`,
      type: 'token',
      data: { name: `Person ${at}`, note: 'x'.repeat(200) },
      metadata: { customer: String(at % 1000) },
    }
    if (!file.write(`${JSON.stringify(row)}\n`))
      await new Promise<void>((resolve) => file.once('drain', () => resolve()))
  }
  await new Promise<void>((resolve) => file.end(resolve))
  await run('import', ['token', 'import', 'rows.ndjson', '--resume', 'state'])
  check((await countLines(join(machine.place, 'state'))) === ROWS + 1, 'each row has a result')
  await run('export', ['token', 'export', 'out.csv', '--reveal'])
  check((await countLines(join(machine.place, 'out.csv'))) === ROWS + 1, 'each token was exported')
  const verified = await machine.coffer(['vault', 'verify'])
  check(verified.code === 0, 'the vault verifies')
} finally {
  machine.remove()
}
process.exitCode = failed ? 1 : 0
