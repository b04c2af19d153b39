/**
 * Measures the vault without interfaces: opening, reading, paging, and its memory. The arguments are rounds and sizes
 * of the vaults. The benchmark `http` measures bulk writes, together with the peers.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { App } from '../src/vault/app.js'
import {
  type Contender,
  firstMessage,
  type Measured,
  measureInTurn,
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
  tokenId,
  UNIT_TOKENS,
} from './filled-vault.js'
import type { Holding } from './holding.js'

const GETS = 200
const PAGES = 20
const PAGE_SIZE = 20
const MEMORY_ROUNDS = 3
const HOLDING = fileURLToPath(new URL('holding.js', import.meta.url))

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
  await measureMemory(vaults)
} finally {
  rmSync(place, { recursive: true, force: true })
}

/** Measures the opening of vaults in this process, which is warm. The benchmark `startup` measures whole processes. */
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
    'Open with a key file (floor: the first vault)',
    'CPU ms',
    await measureInTurn(Number(rounds) * 3, contenders),
  )
}

/**
 * Reads tokens as a server does, with keys in memory and warm caches. The floors read an equal number of kilobytes from
 * one file.
 */
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
    printTimes(`Get a token, ${GETS} random tokens in each round`, 'CPU µs', gets)
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
      const where = { field: 'entry.customer', value }
      const query = { where, page: 1, size: PAGE_SIZE }
      const { total } = await app.store.read((reader) => reader.find('token', number, query))
      if (total !== Math.ceil((tokens - Number(value)) / CUSTOMERS)) throw new Error(`${total} were found.`)
    })
  }
  return { name: `${tokens} tokens`, measure }
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
  const measured = await measureInTurn(MEMORY_ROUNDS, contenders)
  printTimes(
    'Resident memory of an open vault after 5,000 gets and 100 pages (floor: the first vault)',
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
