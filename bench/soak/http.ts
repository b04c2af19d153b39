/** Long tests of HTTP: load, kills, a million requests, and many random requests. */
import { execFileSync } from 'node:child_process'
import { runOutage } from '../../test/abuse/outage.js'
import { runFuzz } from '../../test/http/fuzz.js'
import { createWorkplace, request, runCommand, startProcess } from '../../test/http/process.js'
import { runLoad } from '../load.js'

const OUTAGE_SECONDS = 30
const CONNECTIONS = 50
const FUZZ_REQUESTS = 500_000
const MEMORY_REQUESTS = 1_000_000
/**
 * Number of requests that fill the caches of the server. The test measures the growth of memory only after these
 * requests.
 */
const WARM_REQUESTS = 100_000
const MAX_GROWTH_BYTES = 64 * 1024 * 1024

const faults = [...(await soakOutages()), ...(await soakMemory(MEMORY_REQUESTS)), ...(await soakFuzz())]
for (const fault of faults) console.error(fault)
process.exitCode = faults.length === 0 ? 0 : 1

async function soakOutages(): Promise<string[]> {
  const faults: string[] = []
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const result = await runOutage({ signal, connections: CONNECTIONS, seconds: OUTAGE_SECONDS })
    const { acknowledged, reads, dropped, missing, wrong } = result
    console.log(
      `  ${signal}: ${acknowledged} written, ${reads} read, ${dropped} dropped, ${missing.length} missing`,
    )
    if (missing.length > 0) faults.push(`${signal}: ${missing.length} acknowledged tokens are missing`)
    if (wrong.length > 0) faults.push(`${signal}: ${wrong[0]}`)
    if (signal === 'SIGTERM' && dropped > 0) faults.push(`${dropped} accepted requests were dropped`)
  }
  return faults
}

/**
 * Sends reads, refused requests and unknown paths to a vault on disk. The log records go to the disk, so the memory of
 * the server must not grow.
 */
export async function soakMemory(requests: number): Promise<string[]> {
  const place = createWorkplace()
  try {
    await runCommand(place, ['init'])
    const { child, announcement, ended } = await startProcess(place, ['--starter-apps', '--log', 'none'])
    const key = announcement.applications.private?.key
    const { json } = await request(announcement, key, 'POST /tokens', {
      type: 'token',
      data: 'x'.repeat(500),
    })
    const text = `GET /tokens/${json.id} HTTP/1.1\r\nHost: localhost\r\nSVC-API-KEY: ${key}\r\n\r\n`
    const port = Number(new URL(announcement.url).port)
    let sent = 0
    let warm = 0
    while (sent < requests) {
      const load = { port, connections: CONNECTIONS, seconds: 10, next: () => text, status: 200 }
      sent += (await runLoad(load)).requests
      if (warm === 0 && sent >= Math.min(WARM_REQUESTS, requests / 2)) warm = readMemory(child.pid ?? 0)
    }
    const growth = readMemory(child.pid ?? 0) - warm
    console.log(
      `  memory: ${Math.round(warm / 1e6)} MB when warm, ${Math.round(growth / 1e6)} MB more after ${sent} requests`,
    )
    child.kill('SIGTERM')
    await ended
    return growth > MAX_GROWTH_BYTES ? [`memory grew by ${growth} bytes`] : []
  } finally {
    place.remove()
  }
}

/** Returns the resident memory in bytes. */
function readMemory(pid: number): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }).trim()) * 1024
}

async function soakFuzz(): Promise<string[]> {
  try {
    const { statuses } = await runFuzz(FUZZ_REQUESTS)
    console.log(`  fuzz: ${JSON.stringify(statuses)}`)
    return []
  } catch (error) {
    return [error instanceof Error ? error.message : 'the fuzz run failed']
  }
}
