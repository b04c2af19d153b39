/** Compares bulk writes of tokens in Coffer, SQLite and SQLCipher, with the same rows and indexes. */
import { fork, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  appendFileSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Contender, firstMessage, type Measured, measureInTurn, printRates } from './figures.js'
import {
  CUSTOMERS,
  createFilledVault,
  makeCustomerToken,
  openFilledVault,
  prepareUnit,
  UNIT_TOKENS,
  writeUnit,
} from './filled-vault.js'

const ROUNDS = 3
/** The number of rows in a batch of `coffer token import`. */
const BATCH = 2000
const PROGRAM = fileURLToPath(new URL('../../bin/coffer.js', import.meta.url))
export const PEERS = fileURLToPath(new URL('../../bench/peers/', import.meta.url))

export interface Bulk {
  ours: Measured
  /** The figures are undefined if the packages of the peers are not installed. */
  sqlite?: Measured
  sqlcipher?: Measured
}

/** Returns whether `bench:peers` has installed this package. */
export function isInstalled(name: string): boolean {
  return existsSync(join(PEERS, 'node_modules', name))
}

/**
 * Measures the seconds in which `count` objects in memory become synced rows: one token and one audit row for each
 * object. For Coffer, this function measures `token import`, the storage alone, and the whole command with a file.
 */
export async function measureBulk(count: number): Promise<Bulk> {
  const contenders: Contender[] = [
    { name: 'append and fsync', measure: () => timeAppend(count) },
    { name: 'coffer, token import', measure: () => timeImport(count) },
    { name: 'coffer, units of work', measure: () => timeOwn(count) },
    { name: 'coffer, the command', measure: () => timeCommand(count) },
  ]
  if (isInstalled('better-sqlite3-multiple-ciphers'))
    for (const kind of ['sqlite', 'sqlcipher'])
      contenders.push({ name: `${kind}, same rows and indexes`, measure: () => timePeer(kind, count) })
  const measured = await measureInTurn(ROUNDS, contenders)
  printRates(
    `Bulk: ${count} tokens of 1 KB with audit rows, ${UNIT_TOKENS} tokens for each sync`,
    count,
    measured,
  )
  const [, ours, , , sqlite, sqlcipher] = measured
  return { ours: ours!, ...(sqlite && { sqlite }), ...(sqlcipher && { sqlcipher }) }
}

function timeAppend(count: number): number {
  const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
  const row = Buffer.from(`${JSON.stringify(makeCustomerToken(1))}\n`)
  const start = performance.now()
  const file = openSync(join(place, 'appended'), 'w')
  for (let done = 0; done < count; done += UNIT_TOKENS) {
    writeSync(file, Buffer.concat(Array<Buffer>(Math.min(UNIT_TOKENS, count - done)).fill(row)))
    fsyncSync(file)
  }
  closeSync(file)
  const seconds = (performance.now() - start) / 1000
  rmSync(place, { recursive: true })
  return seconds
}

async function timeOwn(count: number): Promise<number> {
  const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
  const app = await openFilledVault(await createFilledVault(place, 0), 'server')
  const start = performance.now()
  for (let done = 0; done < count; done += UNIT_TOKENS)
    await writeUnit(app, await prepareUnit(app, done, Math.min(UNIT_TOKENS, count - done)))
  const seconds = (performance.now() - start) / 1000
  await app.close()
  rmSync(place, { recursive: true })
  return seconds
}

/** Imports tokens in batches of one resumable run, as `coffer token import` does. */
async function timeImport(count: number): Promise<number> {
  const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
  const app = await openFilledVault(await createFilledVault(place, 0), 'server')
  const run = randomUUID()
  const start = performance.now()
  for (let first = 0; first < count; first += BATCH) {
    const rows = Array.from({ length: Math.min(BATCH, count - first) }, (_, at) =>
      makeCustomerToken(first + at),
    )
    const input = { run, first, rows, stops: true }
    await app.ask({ operation: 'token import', input, as: { reveal: false } })
  }
  const seconds = (performance.now() - start) / 1000
  await app.close()
  rmSync(place, { recursive: true })
  return seconds
}

/**
 * Runs the command with NDJSON in a separate process. The time includes the start of the process and its final flush.
 */
async function timeCommand(count: number): Promise<number> {
  const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
  const { directory, keyFile } = await createFilledVault(place, 0)
  const file = join(place, 'rows.ndjson')
  for (let first = 0; first < count; first += BATCH) {
    const rows = Array.from({ length: Math.min(BATCH, count - first) }, (_, at) =>
      makeCustomerToken(first + at),
    )
    appendFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  }
  const start = performance.now()
  const words = ['token', 'import', file, '--vault', directory, '--key-file', keyFile]
  const { status } = spawnSync(process.execPath, [PROGRAM, ...words])
  if (status !== 0) throw new Error(`coffer token import ended with ${status}.`)
  const seconds = (performance.now() - start) / 1000
  rmSync(place, { recursive: true })
  return seconds
}

async function timePeer(kind: string, count: number): Promise<number> {
  const sample = JSON.stringify(makeCustomerToken(1))
  const child = fork(join(PEERS, 'bulk.js'), [
    kind,
    String(count),
    String(UNIT_TOKENS),
    sample,
    String(CUSTOMERS),
  ])
  return (await firstMessage<{ seconds: number }>(child)).seconds
}
