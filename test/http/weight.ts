/**
 * Starts a server in a separate process, and sends many requests with large responses at once. The program measures the
 * time of `/healthz` and the memory of the process.
 */
import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { type Announcement, createWorkplace, request, startProcess } from './process.js'
import { requestText } from './socket.js'

/** The size of a token's data. A request body with a token of this size is just below the limit. */
const TOKEN_BYTES = 1_000_000

export type Heavy = Awaited<ReturnType<typeof startHeavy>>

/** Starts a server with large tokens, and creates a key that gets masked data. */
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
 * Measures at least three times, and repeats this until `work` ends. Returns the longest times in ms of `/healthz` and
 * of a small request to the vault (Infinity if there was no response), and the highest memory of the process. The
 * function `work` returns the number of responses by status.
 */
export async function weigh(
  { server, key }: Pick<Heavy, 'server' | 'key'>,
  work: () => Promise<Record<string, number>>,
) {
  const { url } = server.announcement
  let isOver = false
  const watch = async (path: string): Promise<number> => {
    let worst = 0
    // This request uses a separate connection. With `fetch`, this request would wait behind the requests whose effect
    // is measured.
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

/** Returns the highest resident memory of the process, as Linux reports it. */
function readPeakMB(pid: number): number {
  const [, kib] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (Number(kib) * 1024) / 1e6
}

/** Sends all `lines` at once, each on a separate connection, and reads each response to its end. */
export async function askAtOnce(
  { url }: Announcement,
  lines: readonly string[],
  key: string,
  body?: string,
): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {}
  await Promise.all(
    lines.map(async (line) => {
      const status = await readStatus(Number(new URL(url).port), textOf(line, key, body))
      statuses[status] = (statuses[status] ?? 0) + 1
    }),
  )
  return statuses
}

function textOf(line: string, key: string, body?: string): string {
  const headers = { 'SVC-API-KEY': key, 'Content-Type': 'application/json', Connection: 'close' }
  return requestText(line, headers, body)
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

/** Opens clients that send requests and never read the responses. Each connection sends `times` requests. */
export function askUnread(
  { url }: Announcement,
  { line, key, connections, times = 1 }: { line: string; key: string; connections: number; times?: number },
): Socket[] {
  const text = requestText(line, { 'SVC-API-KEY': key }).repeat(times)
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
