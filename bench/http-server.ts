/**
 * Runs one server of the HTTP benchmark in a separate process: either a floor, or Coffer on a vault with `tokens`
 * tokens, in files or in a store. The server sends its port and keys when it is ready. Later the server answers the
 * message `cpu` with its CPU time, in ms.
 */
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fdatasync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  write,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { authenticate } from '../src/framework/caller/authenticate.js'
import type { Caller } from '../src/framework/caller/caller.js'
import type { Host } from '../src/framework/host.js'
import { perform } from '../src/framework/perform.js'
import { createRegistry } from '../src/framework/registry.js'
import { validateInput } from '../src/framework/validate.js'
import { registry } from '../src/operations/all.js'
import { createToken, getToken } from '../src/operations/token/noun.js'
import type { Store, StoreWriter } from '../src/storage/store.js'
import type { App } from '../src/vault/app.js'
import { createVault, openVault } from '../src/vault/open.js'
import { ensureSampleApplications } from '../src/vault/sample-applications.js'
import { serveHttp } from '../test/support/service.js'
import { makeToken } from './token-body.js'

/** The message that a server sends when it is ready. */
export interface Ready {
  port: number
  key: string
  /** A key that gets masked data. Undefined if the benchmark does not read masked tokens. */
  maskingKey?: string | undefined
  ids: string[]
  /** The folder in which the peer keeps its files. */
  place?: string
}

const FILL_AT_ONCE = 500
/** The number of connections to a store in PostgreSQL. */
const STORED_AT_ONCE = 16
/** This number of ids is enough for the deletions of a benchmark. */
const MAX_IDS = 200_000

const [kind = '', count = '0', address = '', keyFile = ''] = process.argv.slice(2)
const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
const ready = await startKind()
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ cpuMs: (user + system) / 1000, rssBytes: process.memoryUsage.rss() })
})
process.once('disconnect', () => {
  rmSync(place, { recursive: true, force: true })
  process.exit(0)
})
process.send?.(ready)

function startKind(): Promise<Ready> {
  if (kind === 'coffer') return startCoffer(Number(count))
  if (kind === 'store') return startStore(Number(count))
  return kind === 'bare' ? startBare() : startFloor(kind)
}

/** Starts Coffer without a vault, to measure the cost of HTTP, routing and checks alone. */
async function startBare(): Promise<Ready> {
  const bare: Partial<Host> = {
    createUuid: randomUUID,
    validate: validateInput,
    store: { write: (work) => work({ now: 0 } as StoreWriter) } as Partial<Store> as Store,
  }
  const fixed = { id: 'fixed', ...makeToken(1) }
  const operations = [createToken, getToken].map(({ check: _, ...each }) => ({
    ...each,
    run: async () => fixed,
  }))
  const caller: Caller = {
    tenant: 1,
    actor: { type: 'application', id: 'bench' },
    holds: () => true,
    holdsEverywhere: () => true,
    transform: () => 'reveal',
  }
  const service = {
    host: bare as Host,
    registry: createRegistry([{ name: 'token', summary: '', operations }]),
    authenticate: async () => caller,
    version: '0.0.0',
  }
  const { port } = await serveHttp(service, { port: 0, addresses: ['127.0.0.1'] })
  return { port, key: 'bare', ids: ['fixed'] }
}

async function startCoffer(tokens: number): Promise<Ready> {
  // `coffer serve` also uses an opener of this kind.
  const opener = { kind: 'key-file', save: async () => {} } as const
  const notice = () => {}
  const directory = join(place, 'vault')
  const app = await createVault({ directory, pid: process.pid, notice, role: 'server' }, 'bench', opener)
  const samples = await ensureSampleApplications(app)
  const ids = await fill(app, tokens)
  const service = { host: app, registry, authenticate, version: '0.0.0' }
  const { port } = await serveHttp(service, { port: 0, addresses: ['127.0.0.1'] })
  // A key with permissions and without rules gets masked data.
  const input = { name: 'masking', type: 'private', permissions: ['token:read'] }
  const { result } = await app.ask({ operation: 'app create', input, as: { reveal: false } })
  return { port, key: samples.private?.key ?? '', maskingKey: result.key, ids }
}

/**
 * Starts a server over a store in PostgreSQL. The first of these servers creates the vault and its key file, and the
 * others open the vault.
 */
async function startStore(tokens: number): Promise<Ready> {
  const location = { directory: address, pid: process.pid, notice: () => {}, role: 'server' } as const
  const isFirst = !existsSync(keyFile)
  const save = async (_: string, text: string) => writeFileSync(keyFile, text, { mode: 0o600 })
  const choose = async () => ({ kind: 'key-file', text: readFileSync(keyFile, 'utf8') }) as const
  const app = await (isFirst
    ? createVault(location, 'bench', { kind: 'key-file', save })
    : openVault(location, choose))
  const key = isFirst ? (await ensureSampleApplications(app)).private?.key : undefined
  const ids = isFirst ? await fill(app, tokens, STORED_AT_ONCE) : []
  const service = { host: app, registry, authenticate, version: '0.0.0' }
  const { port } = await serveHttp(service, { port: 0, addresses: ['127.0.0.1'] })
  return { port, key: key ?? '', ids }
}

async function fill(app: App, tokens: number, atOnce = FILL_AT_ONCE): Promise<string[]> {
  const caller = await app.owner({ reveal: false })
  const ids: string[] = []
  for (let done = 0; done < tokens; done += atOnce) {
    const batch = Array.from({ length: Math.min(atOnce, tokens - done) }, (_, at) =>
      perform(app, caller, createToken, makeToken(done + at), 'bench'),
    )
    for (const { result } of await Promise.all(batch)) ids.push((result as { id: string }).id)
  }
  // The ids come from the whole vault, so that a benchmark reads all parts of the vault.
  const step = Math.max(1, Math.floor(ids.length / MAX_IDS))
  return ids.filter((_, at) => at % step === 0)
}

/**
 * Starts a server with plain node:http. The floor `get` returns a fixed kilobyte. The floor `post` parses the body,
 * appends it to a file, syncs it together with other waiting bodies, and answers.
 */
async function startFloor(floor: string): Promise<Ready> {
  const fixed = JSON.stringify({ id: 'fixed', ...makeToken(1) })
  const file = openSync(join(place, 'floor'), 'a')
  const append = createAppender(file)
  const server = createServer((request, response) => {
    const answer = (status: number, body: string) => {
      response.writeHead(status, {
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
      })
      response.end(body)
    }
    if (floor === 'get') return answer(200, fixed)
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.stringify({ id: 'x', ...(JSON.parse(Buffer.concat(chunks).toString()) as object) })
      append(`${body}\n`, () => answer(201, body))
    })
  })
  server.once('close', () => closeSync(file))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    key: 'none',
    ids: ['fixed'],
  }
}

/** Writes and syncs all waiting texts together. Only one sync of the file runs at a time. */
function createAppender(file: number): (text: string, done: () => void) => void {
  let waiting: { text: string; done: () => void }[] = []
  let isBusy = false
  const flush = () => {
    if (isBusy || waiting.length === 0) return
    isBusy = true
    const group = waiting
    waiting = []
    write(file, group.map(({ text }) => text).join(''), () => {
      fdatasync(file, () => {
        isBusy = false
        for (const { done } of group) done()
        flush()
      })
    })
  }
  return (text, done) => {
    waiting.push({ text, done })
    setImmediate(flush)
  }
}
