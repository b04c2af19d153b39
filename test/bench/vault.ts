/**
 * The vault without its doors: opening, reading, paging, writing in bulk, and the memory it takes. Arguments: rounds, sizes
 * of the vaults; the largest size is also what is written in bulk.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, fsyncSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { App } from '../../src/vault/app.js'
import {
  type Contender,
  firstMessage,
  type Measured,
  measureInTurn,
  printRates,
  printRatio,
  printTimes,
  ratiosOf,
  timeCpu,
} from './figures.js'
import {
  CUSTOMERS,
  createFilledVault,
  type FilledVault,
  makeCustomerToken,
  openFilledVault,
  prepareUnit,
  tokenId,
  UNIT_TOKENS,
  writeUnit,
} from './filled-vault.js'
import type { Holding } from './holding.js'

const GETS = 200
const PAGES = 20
const PAGE_SIZE = 20
const BULK_ROUNDS = 3
const HOLDING = fileURLToPath(new URL('holding.js', import.meta.url))
const PEERS = fileURLToPath(new URL('../../../test/bench/peers/', import.meta.url))

const [rounds = '7', sizes = '0,1000,100000'] = process.argv.slice(2)
const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
const row = Buffer.from(`${JSON.stringify(makeCustomerToken(1))}\n`)

try {
  const counts = sizes.split(',').map(Number)
  const vaults = new Map<number, FilledVault>()
  for (const tokens of counts) vaults.set(tokens, await createFilledVault(place, tokens))
  const filled = counts.filter((tokens) => tokens > 0)
  await measureOpening(vaults)
  await measureReading(vaults, filled)
  await measureBulk(Math.max(...counts))
  await measureMemory(vaults)
} finally {
  rmSync(place, { recursive: true, force: true })
}

/** In this process, warm: what a process of its own costs is measured by `startup`. */
async function measureOpening(vaults: ReadonlyMap<number, FilledVault>): Promise<void> {
  const contenders = [...vaults].map(([tokens, vault]) => ({
    name: `${tokens} tokens`,
    measure: async () => {
      let app: App | undefined
      const micros = await timeCpu(1, async () => {
        app = await openFilledVault(vault, 'command')
      })
      await app?.close()
      return micros / 1000
    },
  }))
  printTimes(
    'Open by key file (floor: the first)',
    'CPU ms',
    await measureInTurn(Number(rounds) * 3, contenders),
  )
}

/** As a server does it, with keys open and caches warm; floors read the same number of kilobytes from one file. */
async function measureReading(
  vaults: ReadonlyMap<number, FilledVault>,
  sizes: readonly number[],
): Promise<void> {
  const raw = createRawFile(Math.max(...sizes))
  const apps: [number, App][] = []
  for (const tokens of sizes) apps.push([tokens, await openFilledVault(vaults.get(tokens)!, 'server')])
  try {
    const gets = await measureInTurn(Number(rounds), [
      { name: 'read and parse 1 KB', measure: () => timeCpu(GETS, () => raw.read()) },
      ...apps.map(([tokens, app]) => createGets(tokens, app)),
    ])
    printTimes(`Get a token, ${GETS} at random a round`, 'CPU µs', gets)
    printOver(gets)
    const pages = await measureInTurn(Number(rounds), [
      {
        name: `read and parse ${PAGE_SIZE} × 1 KB`,
        measure: () =>
          timeCpu(PAGES, () => {
            for (let at = 0; at < PAGE_SIZE; at++) raw.read()
          }),
      },
      ...apps.map(([tokens, app]) => createPages(tokens, app)),
    ])
    printTimes(`Page of ${PAGE_SIZE} by metadata, with the exact total`, 'CPU µs', pages)
    printOver(pages)
  } finally {
    for (const [, app] of apps) await app.close()
    raw.close()
  }
}

function printOver(measured: readonly Measured[]): void {
  const [smallest, largest] = [measured[1], measured.at(-1)]
  if (smallest === undefined || largest === undefined || smallest === largest) return
  printRatio(`${largest.name}, time over ${smallest.name}`, ratiosOf(largest, smallest))
}

function createGets(tokens: number, app: App): Contender {
  const measure = async () => {
    const { number } = await app.tenant()
    return timeCpu(GETS, async () => {
      const id = tokenId(Math.floor(Math.random() * tokens))
      const found = await app.store.read((reader) => reader.get('token', number, id))
      if (found?.id !== id) throw new Error(`${id} was not found.`)
    })
  }
  return { name: `${tokens} tokens`, measure }
}

function createPages(tokens: number, app: App): Contender {
  const measure = async () => {
    const { number } = await app.tenant()
    return timeCpu(PAGES, async () => {
      const value = String(Math.floor(Math.random() * CUSTOMERS))
      const where = { field: 'metadata.customer', value }
      const query = { where, page: 1, size: PAGE_SIZE }
      const { total } = await app.store.read((reader) => reader.find('token', number, query))
      if (total !== Math.ceil((tokens - Number(value)) / CUSTOMERS)) throw new Error(`${total} were found.`)
    })
  }
  return { name: `${tokens} tokens`, measure }
}

/** Sealed, digested, indexed and synced in units, prepared before; the peers keep the same kilobytes as they are. */
async function measureBulk(count: number): Promise<void> {
  const contenders: Contender[] = [
    { name: 'append and fsync', measure: () => timeAppend(count) },
    { name: 'coffer, each with its log record', measure: () => timeOwnBulk(count) },
  ]
  if (existsSync(join(PEERS, 'node_modules/better-sqlite3-multiple-ciphers'))) {
    for (const kind of ['sqlite', 'sqlcipher'])
      contenders.push({ name: `${kind}, indexed by id`, measure: () => timePeer(kind, count) })
  } else console.log('\nSQLite and SQLCipher: not installed; npm run bench:peers')
  const measured = await measureInTurn(BULK_ROUNDS, contenders)
  printRates(`Write ${count} records of ${row.length} bytes, ${UNIT_TOKENS} a sync`, count, measured)
  const sqlite = measured[2]
  if (sqlite !== undefined) printRatio('coffer, speed over sqlite', ratiosOf(sqlite, measured[1]!))
}

function timeAppend(count: number): number {
  const path = join(place, 'appended')
  const start = performance.now()
  const file = openSync(path, 'w')
  for (let done = 0; done < count; done += UNIT_TOKENS) {
    writeSync(file, Buffer.concat(Array<Buffer>(Math.min(UNIT_TOKENS, count - done)).fill(row)))
    fsyncSync(file)
  }
  closeSync(file)
  return secondsSince(start)
}

async function timeOwnBulk(count: number): Promise<number> {
  const parent = mkdtempSync(join(place, 'bulk-'))
  const app = await openFilledVault(await createFilledVault(parent, 0), 'server')
  let seconds = 0
  for (let done = 0; done < count; done += UNIT_TOKENS) {
    const unit = await prepareUnit(app, done, Math.min(UNIT_TOKENS, count - done))
    const start = performance.now()
    await writeUnit(app, unit)
    seconds += secondsSince(start)
  }
  await app.close()
  rmSync(parent, { recursive: true })
  return seconds
}

async function timePeer(kind: string, count: number): Promise<number> {
  const child = fork(join(PEERS, 'bulk.js'), [kind, String(count), String(UNIT_TOKENS), row.toString()])
  const { seconds } = await firstMessage<{ seconds: number }>(child)
  return seconds
}

async function measureMemory(vaults: ReadonlyMap<number, FilledVault>): Promise<void> {
  const contenders = [...vaults].map(([tokens, vault]) => ({
    name: `${tokens} tokens`,
    measure: async () => {
      const child = fork(HOLDING, [JSON.stringify(vault), String(tokens)])
      const { rssMb } = await firstMessage<Holding>(child)
      await once(child, 'exit')
      return rssMb
    },
  }))
  const measured = await measureInTurn(BULK_ROUNDS, contenders)
  printTimes(
    'Resident memory of an open vault after 5,000 gets and 100 pages (floor: the first)',
    'MB',
    measured,
  )
}

function createRawFile(rows: number) {
  const path = join(place, 'raw')
  const file = openSync(path, 'w+')
  for (let done = 0; done < rows; done += UNIT_TOKENS)
    writeSync(file, Buffer.concat(Array<Buffer>(Math.min(UNIT_TOKENS, rows - done)).fill(row)))
  const target = Buffer.alloc(row.length)
  return {
    read(): unknown {
      readSync(file, target, 0, row.length, Math.floor(Math.random() * rows) * row.length)
      return JSON.parse(target.toString())
    },
    close: () => closeSync(file),
  }
}

function secondsSince(start: number): number {
  return (performance.now() - start) / 1000
}
