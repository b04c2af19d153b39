/**
 * A server under mixed load that is ended by a signal: what it had acknowledged, and what it let fall. Knows HTTP from
 * outside only.
 */
import { once } from 'node:events'
import { Agent, request as requestHttp } from 'node:http'
import {
  type Announcement,
  createWorkplace,
  type Outcome,
  request,
  runCommand,
  startProcess,
} from '../http/process.js'

export interface Outage {
  signal: 'SIGKILL' | 'SIGTERM'
  connections: number
  /** Of load before the signal. */
  seconds: number
}

export interface OutageResult {
  acknowledged: number
  reads: number
  /** Requests that were sent and never answered. */
  dropped: number
  /** What the next start of the server does not have as it was acknowledged. */
  missing: string[]
  /** Wrong answers while all was well. */
  wrong: string[]
  ended: Outcome
}

const READ_SHARE = 0.7
const PAGE_SIZE = 100

/** What was acknowledged: the data of each token by its id, undefined where its deletion was. */
type Acknowledged = Map<string, string | undefined>

/** Starts, loads, ends and starts a server again. */
export async function runOutage({ signal, connections, seconds }: Outage): Promise<OutageResult> {
  const place = createWorkplace()
  try {
    const init = await runCommand(place, ['init'])
    if (init.code !== 0) throw new Error(init.stderr)
    const first = await startProcess(place, ['--starter-apps', '--log', 'none'])
    const key = first.announcement.applications.private?.key ?? ''
    const load = createLoad(first.announcement, key, connections)
    const clients = Array.from({ length: connections }, (_, at) => load.run(at))
    const timer = setTimeout(() => first.child.kill(signal), seconds * 1000)
    const ended = await first.ended
    clearTimeout(timer)
    await Promise.all(clients)
    const second = await startProcess(place, ['--log', 'none'])
    const missing = await findMissing(second.announcement, key, load.acknowledged)
    second.child.kill('SIGTERM')
    await second.ended
    const { acknowledged, reads, dropped, wrong } = load
    return { acknowledged: acknowledged.size, reads, dropped, wrong, missing, ended }
  } finally {
    place.remove()
  }
}

interface Load {
  readonly acknowledged: Acknowledged
  reads: number
  dropped: number
  wrong: string[]
  /** One client, until the server is gone. */
  run(number: number): Promise<void>
}

function createLoad({ url }: Announcement, key: string, connections: number): Load {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const load: Load = { acknowledged: new Map(), reads: 0, dropped: 0, wrong: [], run }
  return load

  async function run(number: number): Promise<void> {
    const own: string[] = []
    for (let step = 0; ; step++) {
      const isRead = own.length > 0 && (step * 7 + number) % 10 < READ_SHARE * 10
      const isDelete = !isRead && own.length > 5
      const data = `data ${number} ${step}`
      const id = isDelete ? own.shift()! : own[step % own.length]
      const line = isRead ? `GET /tokens/${id}` : isDelete ? `DELETE /tokens/${id}` : 'POST /tokens'
      const answer = await ask(line, isRead || isDelete ? undefined : { type: 'token', data })
      if (answer === 'refused') return
      if (answer === 'dropped') {
        load.dropped++
        // Nobody can know whether this deletion was done.
        if (isDelete) load.acknowledged.delete(id!)
        return
      }
      note(line, answer, { id: id ?? '', data, own, isRead, isDelete })
    }
  }

  function note(
    line: string,
    { status, body }: { status: number; body: string },
    step: { id: string; data: string; own: string[]; isRead: boolean; isDelete: boolean },
  ): void {
    const expected = step.isRead ? 200 : step.isDelete ? 204 : 201
    if (status !== expected) {
      load.wrong.push(`${line}: ${status} ${body}`)
      return
    }
    if (step.isDelete) load.acknowledged.set(step.id, undefined)
    else if (step.isRead) {
      load.reads++
      const { data } = JSON.parse(body) as { data: string }
      if (data !== load.acknowledged.get(step.id)) load.wrong.push(`${line}: ${data}`)
    } else {
      const { id } = JSON.parse(body) as { id: string }
      load.acknowledged.set(id, step.data)
      step.own.push(id)
    }
  }

  async function ask(
    line: string,
    body: object | undefined,
  ): Promise<{ status: number; body: string } | 'refused' | 'dropped'> {
    const [method = '', path = ''] = line.split(' ')
    const outgoing = requestHttp(`${url.replace('localhost', '127.0.0.1')}${path}`, {
      method,
      agent,
      headers: { 'SVC-API-KEY': key, 'Content-Type': 'application/json' },
    })
    outgoing.end(body === undefined ? undefined : JSON.stringify(body))
    try {
      const [response] = await once(outgoing, 'response')
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer)
      return { status: response.statusCode, body: Buffer.concat(chunks).toString() }
    } catch (error) {
      return (error as { code?: string }).code === 'ECONNREFUSED' ? 'refused' : 'dropped'
    }
  }
}

/** Every acknowledged token as the server lists it now. */
async function findMissing(
  announcement: Announcement,
  key: string,
  acknowledged: Acknowledged,
): Promise<string[]> {
  const held = new Map<string, string>()
  for (let page = 1, pages = 1; page <= pages; page++) {
    const { json } = await request(announcement, key, `GET /tokens?page=${page}&size=${PAGE_SIZE}`)
    pages = json.pagination.total_pages
    for (const { id, data } of json.data as { id: string; data: string }[]) held.set(id, data)
  }
  return [...acknowledged].filter(([id, data]) => held.get(id) !== data).map(([id]) => id)
}
