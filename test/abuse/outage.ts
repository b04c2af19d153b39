/**
 * Sends mixed requests to a server until a signal ends the server. Reports the acknowledged changes and the lost
 * requests. The load uses only HTTP.
 */
import { once } from 'node:events'
import { Agent, request as requestHttp } from 'node:http'
import { type Announcement, createWorkplace, request, runCommand, startProcess } from '../http/process.js'

export interface Outage {
  signal: 'SIGKILL' | 'SIGTERM'
  connections: number
  /** Duration of the load before the signal. */
  seconds: number
}

const PAGE_SIZE = 100

/** Starts a server, sends requests to the server, ends the server, and starts it again. */
export async function runOutage({ signal, connections, seconds }: Outage) {
  const place = createWorkplace()
  try {
    const init = await runCommand(place, ['init'])
    if (init.code !== 0) throw new Error(init.stderr)
    const first = await startProcess(place, ['--starter-apps', '--log', 'none'])
    const key = first.announcement.applications.private?.key ?? ''
    const load = new Load(first.announcement, key)
    const clients = Array.from({ length: connections }, (_, at) => load.run(at))
    const timer = setTimeout(() => {
      load.signalledAt = performance.now()
      first.child.kill(signal)
    }, seconds * 1000)
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

/** Clients that write, read and delete tokens until the server ends. */
class Load {
  /** The data of each token by its id. The data is undefined if the deletion was acknowledged. */
  readonly acknowledged = new Map<string, string | undefined>()
  reads = 0
  /** Number of requests that were sent before the signal and got no response. */
  dropped = 0
  /** Descriptions of the wrong responses before the signal. */
  readonly wrong: string[] = []
  /** Time of the signal, as returned by `performance.now()`. */
  signalledAt = Number.POSITIVE_INFINITY
  readonly #url: string
  readonly #key: string
  readonly #agent = new Agent({ keepAlive: true })

  constructor({ url }: Announcement, key: string) {
    this.#url = url.replace('localhost', '127.0.0.1')
    this.#key = key
  }

  async run(number: number): Promise<void> {
    const own: string[] = []
    for (let step = 0; ; step++) {
      const isRead = own.length > 0 && (step * 7 + number) % 10 < 7
      const isDelete = !isRead && own.length > 5
      const data = `data ${number} ${step}`
      const id = isDelete ? own.shift()! : own[step % own.length]!
      const line = isRead ? `GET /tokens/${id}` : isDelete ? `DELETE /tokens/${id}` : 'POST /tokens'
      const answer = await this.#ask(line, isRead || isDelete ? undefined : { type: 'token', data })
      if (typeof answer === 'string') {
        if (answer === 'dropped') this.dropped++
        // A deletion without a response may have been performed or not, so the check at the end must not expect this
        // token.
        if (answer !== 'refused' && isDelete) this.acknowledged.delete(id)
        return
      }
      const { status, json } = answer
      const expected = isRead ? json?.data === this.acknowledged.get(id) : true
      if (status !== (isRead ? 200 : isDelete ? 204 : 201) || !expected)
        this.wrong.push(`${line}: ${status} ${JSON.stringify(json)}`)
      else if (isRead) this.reads++
      else {
        this.acknowledged.set(isDelete ? id : json.id, isDelete ? undefined : data)
        if (!isDelete) own.push(json.id)
      }
    }
  }

  async #ask(line: string, body?: object) {
    const [method = '', path = ''] = line.split(' ')
    const headers = { 'SVC-API-KEY': this.#key, 'Content-Type': 'application/json' }
    const outgoing = requestHttp(this.#url + path, { method, agent: this.#agent, headers })
    const sentAt = performance.now()
    outgoing.end(body && JSON.stringify(body))
    try {
      const [response] = await once(outgoing, 'response')
      const text = (await response.toArray()).join('')
      return { status: response.statusCode, json: text === '' ? undefined : JSON.parse(text) }
    } catch (error) {
      if ((error as { code?: string }).code === 'ECONNREFUSED') return 'refused'
      // A request that starts after the signal may use an idle connection that the server is closing. A failure of this
      // request is no error of the server.
      return sentAt > this.signalledAt ? 'late' : 'dropped'
    }
  }
}

/** Returns the acknowledged tokens that are missing from the list of the server or that have changed. */
async function findMissing(
  announcement: Announcement,
  key: string,
  acknowledged: Load['acknowledged'],
): Promise<string[]> {
  const held = new Map<string, string>()
  for (let page = 1, pages = 1; page <= pages; page++) {
    const { json } = await request(announcement, key, `GET /tokens?page=${page}&size=${PAGE_SIZE}`)
    pages = json.pagination.total_pages
    for (const { id, data } of json.data as { id: string; data: string }[]) held.set(id, data)
  }
  return [...acknowledged].filter(([id, data]) => held.get(id) !== data).map(([id]) => id)
}
