/**
 * What large answers do to a server in a process of its own: many are asked for at once, read or not read, and
 * meanwhile it is measured how long `/healthz` takes and how much memory the process has.
 */
import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { type Announcement, createWorkplace, request, startProcess } from './process.js'
import { spellRequest } from './socket.js'

/** Of the data of one token, so that its body is just within the limit. */
const TOKEN_BYTES = 1_000_000

export type Heavy = Awaited<ReturnType<typeof startHeavy>>

/** A server with large tokens, and keys that see them in the clear or masked. */
export async function startHeavy(tokens: number) {
  const place = createWorkplace()
  const server = await startProcess(place, ['--ephemeral', '--log', 'none'])
  const { announcement } = server
  const key = announcement.applications.private!.key!
  const data = 'x'.repeat(TOKEN_BYTES)
  const ids: string[] = []
  for (let count = 0; count < tokens; count++)
    ids.push((await request(announcement, key, 'POST /tokens', { type: 'token', data })).json.id)
  const manager = announcement.applications.management!.key
  const grants = { name: 'masked', type: 'private', permissions: ['token:read', 'token:search'] }
  const masked = await request(announcement, manager, 'POST /applications', grants)
  const stop = async () => {
    server.child.kill('SIGTERM')
    await server.ended
    place.remove()
  }
  return { server, key, maskedKey: masked.json.key as string, ids, stop }
}

/**
 * Measures while `work` goes on, and at least three times: the longest that `/healthz` took, and another request for a small
 * thing of the vault, in ms (Infinity: no answer), and the most memory that the process ever had. `work` tells how many
 * answers had which status, of those that were read.
 */
export async function weigh(
  { server, key }: Pick<Heavy, 'server' | 'key'>,
  work: () => Promise<Record<string, number>>,
) {
  const { url } = server.announcement
  let isOver = false
  const watch = async (path: string): Promise<number> => {
    let worst = 0
    // A connection of its own: fetch would queue behind the requests that are measured.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let looks = 0; !isOver || looks < 3; looks++) {
      const began = performance.now()
      if (!(await isAnswered(`${url}${path}`, key, agent))) return Number.POSITIVE_INFINITY
      worst = Math.max(worst, performance.now() - began)
      await wait(10)
    }
    agent.destroy()
    return worst
  }
  const began = performance.now()
  const watching = [watch('/healthz'), watch('/permissions')]
  await wait(50)
  const statuses = await work().finally(() => {
    isOver = true
  })
  const ms = performance.now() - began
  const [worstHealthMs = 0, worstReadMs = 0] = await Promise.all(watching)
  return { statuses, worstHealthMs, worstReadMs, peakMB: readPeakMB(server.child.pid!), ms }
}

function isAnswered(url: string, key: string, agent: Agent): Promise<boolean> {
  return new Promise((resolve) => {
    get(url, { agent, headers: { 'SVC-API-KEY': key } }, (response) => {
      response.resume()
      response.once('end', () => resolve(true))
    }).once('error', () => resolve(false))
  })
}

/** Resident memory at its highest, as Linux keeps it. */
function readPeakMB(pid: number): number {
  const [, kib] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (Number(kib) * 1024) / 1e6
}

/** Asks for each of `lines` at once, on a connection of its own, and reads every answer to its end. */
export async function askAtOnce(
  { url }: Announcement,
  lines: readonly string[],
  key: string,
  body?: string,
): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {}
  await Promise.all(
    lines.map(async (line) => {
      const status = await readStatus(Number(new URL(url).port), spell(line, key, body))
      statuses[status] = (statuses[status] ?? 0) + 1
    }),
  )
  return statuses
}

function spell(line: string, key: string, body?: string): string {
  const headers = { 'SVC-API-KEY': key, 'Content-Type': 'application/json', Connection: 'close' }
  return spellRequest(line, headers, body)
}

function readStatus(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let status = ''
    socket.on('data', (chunk: Buffer) => {
      if (status === '') status = chunk.toString('latin1', 9, 12)
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(status))
    socket.write(text)
  })
}

/** Clients that ask and never read; `times` requests on each connection. */
export function askUnread(
  { url }: Announcement,
  { line, key, connections, times = 1 }: { line: string; key: string; connections: number; times?: number },
): Socket[] {
  const text = spellRequest(line, { 'SVC-API-KEY': key }).repeat(times)
  return Array.from({ length: connections }, () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.pause()
    socket.write(text)
    return socket
  })
}

export function repeat(line: string, times: number): string[] {
  return Array.from({ length: times }, () => line)
}
