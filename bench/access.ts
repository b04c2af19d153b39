/**
 * Measures the cost of access: a decision by rules, a whole request (from the check of its key to its response), and a
 * search. An argument selects a single part: `rules`, `request [tokens]` or `search [tokens]`. The part `search` also
 * verifies the log of its tokens.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decideTransform, type Rule } from '../src/domain/access/access.js'
import { authenticate } from '../src/framework/caller/authenticate.js'
import { perform } from '../src/framework/perform.js'
import { createToken, getToken } from '../src/operations/token/noun.js'
import { searchTokens } from '../src/operations/token/search.js'
import type { App } from '../src/vault/app.js'
import { createVault } from '../src/vault/open.js'
import { ensureSampleApplications } from '../src/vault/sample-applications.js'
import { makeToken } from './token-body.js'

const FILL_AT_ONCE = 500

const [piece = 'all', count] = process.argv.slice(2)
if (piece === 'all' || piece === 'rules') measureRules()
if (piece === 'all' || piece === 'request') await measureRequest(Number(count ?? 1000))
if (piece === 'search') await measureSearch(Number(count ?? 1000))
if (piece === 'all') for (const tokens of [1000, 100_000]) await measureSearch(tokens)

/** Measures a decision about two containers. Only the last rule matches these containers. */
function measureRules(): void {
  for (const rules of [1, 10, 100]) {
    const granted: Rule[] = Array.from({ length: rules }, (_, index) => ({
      priority: index + 1,
      container: index === rules - 1 ? '/' : `/team-${index}/`,
      transform: 'mask',
      permissions: ['token:read'],
    }))
    const grants = { rules: granted, permissions: [] }
    const containers = ['/pci/high/', '/general/high/']
    const micros = time(20_000, () => decideTransform(grants, 'token:read', { containers }))
    console.log(`decide with ${rules} rules and 2 containers: ${micros.toFixed(2)} µs`)
  }
}

async function measureRequest(tokens: number): Promise<void> {
  const { app, key, ids, close } = await openVault(tokens)
  const get = async (index: number) => {
    const caller = await authenticate(app, key)
    return perform(app, caller, getToken, { id: ids[index % ids.length] }, 'bench')
  }
  const authenticated = await timeAsync(3000, () => authenticate(app, key))
  const whole = await timeAsync(3000, get)
  console.log(
    `${tokens} tokens: authenticate takes ${authenticated.toFixed(1)} µs CPU, and get takes ${whole.toFixed(1)} µs`,
  )
  await close()
}

async function measureSearch(tokens: number): Promise<void> {
  const { app, key, close } = await openVault(tokens)
  const ask = async (query: string) =>
    perform(app, await authenticate(app, key), searchTokens, { query }, 'bench')
  for (const query of [
    'metadata.customer:7',
    'type:token AND NOT metadata.customer:7',
    'container:/general/* AND created_at:[2020-01-01 TO *]',
    'data:nobody',
  ]) {
    const micros = await timeAsync(200, () => ask(query))
    const { pagination } = (await ask(query)).result as { pagination: { total_items: number } }
    console.log(
      `${tokens} tokens, ${query}: ${pagination.total_items} found, ${(micros / 1000).toFixed(2)} ms a page`,
    )
  }
  const start = performance.now()
  const { count } = await app.store.verifyLogs(1)
  console.log(`${count} log records verified in ${Math.round(performance.now() - start)} ms`)
  await close()
}

async function openVault(tokens: number) {
  const place = mkdtempSync(join(tmpdir(), 'coffer-bench-'))
  const opener = { kind: 'key-file', save: async () => {} } as const
  const where = {
    directory: join(place, 'vault'),
    pid: process.pid,
    notice: () => {},
    role: 'server' as const,
  }
  const app = await createVault(where, 'bench', opener)
  const samples = await ensureSampleApplications(app)
  const ids = await fill(app, tokens)
  const close = async () => {
    await app.close()
    rmSync(place, { recursive: true, force: true })
  }
  return { app, ids, key: samples.private?.key ?? '', close }
}

async function fill(app: App, tokens: number): Promise<string[]> {
  const caller = await app.owner({ reveal: false })
  const ids: string[] = []
  for (let done = 0; done < tokens; done += FILL_AT_ONCE) {
    const batch = Array.from({ length: Math.min(FILL_AT_ONCE, tokens - done) }, (_, at) =>
      perform(app, caller, createToken, makeToken(done + at), 'bench'),
    )
    for (const { result } of await Promise.all(batch)) ids.push((result as { id: string }).id)
  }
  return ids
}

/**
 * Returns the CPU time of one run in µs: the best of six rounds, because other work on the machine slows some rounds.
 */
function time(runs: number, work: () => unknown): number {
  const rounds = Array.from({ length: 6 }, () => {
    const start = cpuMicros()
    for (let run = 0; run < runs; run++) work()
    return (cpuMicros() - start) / runs
  })
  return Math.min(...rounds)
}

async function timeAsync(runs: number, work: (index: number) => Promise<unknown>): Promise<number> {
  const rounds: number[] = []
  for (let round = 0; round < 5; round++) {
    const start = cpuMicros()
    for (let run = 0; run < runs; run++) await work(run)
    rounds.push((cpuMicros() - start) / runs)
  }
  return Math.min(...rounds)
}

function cpuMicros(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}
