/**
 * Tests of small requests that cause much work. Each request has a separate server. During each request, `/healthz`
 * must answer, and the refusal of the request must name the limit.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { type Announcement, createWorkplace, request, startProcess } from '../../test/http/process.js'
import { repeat, weigh } from '../../test/http/weight.js'

const MAX_HEALTH_MS = 300
const MIB = 1024 * 1024

interface Attack {
  announcement: Announcement
  /**
   * Sends a JSON body with the key of the first application that has this type. The function returns the status of the
   * response.
   */
  send(type: 'public' | 'private' | 'management', line: string, body: string): Promise<string>
  /** Creates a record that an attack needs. The function returns the response of the server. */
  make(type: 'private' | 'management', line: string, body: object): Promise<Record<string, string>>
}

/**
 * A function that prepares an attack. The function returns another function, which carries out the attack while the
 * test watches `/healthz`.
 */
type Prepare = (attack: Attack) => Promise<() => Promise<string>>

function plain(type: 'public' | 'private', line: string, value: unknown): Prepare {
  const body = typeof value === 'string' ? value : JSON.stringify(value)
  return async ({ send }) =>
    () =>
      send(type, line, body)
}

function times<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at))
}

/** Sends `count` copies of a request at once, without an API key, and reads all responses. */
function pipeline(head: string, count: number): Prepare {
  return async ({ announcement }) =>
    async () => {
      const socket = connect(Number(new URL(announcement.url).port), '127.0.0.1')
      socket.resume()
      socket.end(`${head}\r\nHost: localhost\r\n\r\n`.repeat(count))
      await once(socket, 'close')
      return 'closed'
    }
}

const masks = (count: number) => {
  const mask = `{{ data | pad_left: 9999,"x"${' | reveal'.repeat(39)} }}`
  return times(count, () => ({ type: 'token', data: 'x', mask }))
}

const transforms = {
  code: { code: 'module.exports = async (req) => ({ body: req.args.body })' },
  mask: { type: 'mask', matcher: 'regex', expression: '(1)', replacement: '*' },
}

/** Calls a proxy with a transform, without an API key. The response of the destination has 8 MiB. */
function proxied(transform: keyof typeof transforms, type: string, body: Buffer): Prepare {
  return async ({ announcement, make }) => {
    const { key = '' } = await make('management', 'POST /proxies', {
      name: 'hostile',
      destination_url: `http://127.0.0.1:${destination(type, body)}`,
      require_auth: false,
      response_transforms: [transforms[transform]],
    })
    return async () => {
      const headers = { [`${announcement.prefix}-PROXY-KEY`]: key, 'content-type': 'application/json' }
      const answer = await fetch(`${announcement.url}/proxy/`, { method: 'POST', headers, body: '{}' })
      await answer.arrayBuffer()
      return String(answer.status)
    }
  }
}

const bodies = new Map<string, { type: string; body: Buffer }>()
const destinations = createServer((asked, answer) => {
  asked.resume()
  const { type, body } = bodies.get('next')!
  answer.setHeader('content-type', type)
  answer.end(body)
})
destinations.listen(0, '127.0.0.1')
await once(destinations, 'listening')

function destination(type: string, body: Buffer): number {
  bodies.set('next', { type, body })
  return (destinations.address() as AddressInfo).port
}

const rows = (bytes: number) => {
  const row = { name: 'n', tags: ['a', 'b'], card: '4242424242424242', note: 'x'.repeat(50) }
  return Buffer.from(JSON.stringify(times(Math.floor(bytes / (JSON.stringify(row).length + 1)), () => row)))
}

const ATTACKS: Record<string, Prepare> = {
  'POST /tokenize, 50 masks of 383 characters': plain('public', 'POST /tokenize', masks(50)),
  'POST /tokenize, 300 such masks': plain('public', 'POST /tokenize', masks(300)),
  'POST /tokenize, 100 at once, each just below the limit': async ({ send }) => {
    const mask = `{{ data | pad_left: 9999,"x"${' | reveal'.repeat(3)} }}`
    const body = JSON.stringify(times(20, () => ({ type: 'token', data: 'x', mask })))
    return async () => {
      const statuses = await Promise.all(times(100, () => send('public', 'POST /tokenize', body)))
      return [...new Set(statuses)].join()
    }
  },
  'POST /detokenize, 15 tokens of 990 KB, 14 reveals each': async ({ make, send }) => {
    const data = 'x'.repeat(990_000)
    const ids: (string | undefined)[] = []
    for (let count = 0; count < 15; count++)
      ids.push((await make('private', 'POST /tokens', { type: 'token', data })).id)
    const body = JSON.stringify(ids.map((id) => `{{ ${id}${' | reveal: 1,1'.repeat(14)} }}`))
    return () => send('private', 'POST /detokenize', body)
  },
  'POST /detokenize, 60,000 distinct expressions': plain(
    'private',
    'POST /detokenize',
    times(60_000, (at) => `${at}{{abc}}`),
  ),
  'POST /detokenize, 80,000 filters': plain('private', 'POST /detokenize', [
    `{{abc${'|upcase'.repeat(80_000)}}}`,
  ]),
  'POST /detokenize, 80,000 filters and an unknown filter': plain('private', 'POST /detokenize', [
    `{{abc${'|upcase'.repeat(80_000)}|nope}}`,
  ]),
  'POST /tokens, 1 MiB of []': plain('private', 'POST /tokens', `[${'[],'.repeat(MIB / 3 - 10)}[]]`),
  'POST /tokenize, 1 MiB of {}': plain('public', 'POST /tokenize', `[${'{},'.repeat(MIB / 3 - 10)}{}]`),
  'POST /tokens/search, 50 terms': plain('private', 'POST /tokens/search', {
    query: times(50, (at) => `metadata.a${at}:x`).join(' OR '),
  }),
  '5,000 pipelined requests without a key': pipeline('GET /tokens HTTP/1.1', 5_000),
  '5,000 pipelined requests for a missing page': pipeline('GET /nothing HTTP/1.1', 5_000),
  '8,000 sets of containers': async ({ send, make }) => {
    for (let from = 0; from < 8_000; from += 1_000) {
      const tokens = times(1_000, (at) => ({
        type: 'token',
        data: 'x',
        containers: [`/general/c${from + at}/`],
      }))
      await send('public', 'POST /tokenize', JSON.stringify(tokens))
    }
    await make('private', 'POST /tokens/search', { query: 'type:token', size: 1 })
    return () => send('private', 'POST /tokens/search', JSON.stringify({ query: 'container:/general/c1*' }))
  },
  '8 MiB of rows through code': proxied('code', 'application/json', rows(8 * MIB - 10_000)),
  '8 MiB of text through a mask': proxied(
    'mask',
    'text/plain',
    Buffer.from(repeat('a1 ', 2_790_000).join('')),
  ),
}

async function attack(prepare: Prepare): Promise<string[]> {
  const place = createWorkplace()
  const { port } = destinations.address() as AddressInfo
  const server = await startProcess(place, [
    '--ephemeral',
    '--log',
    'none',
    '--allow-net',
    `127.0.0.1:${port}`,
  ])
  const { announcement } = server
  const keyOf = (type: keyof Announcement['applications']) => announcement.applications[type]!.key!
  const work = await prepare({
    announcement,
    send: async (type, line, body) => {
      const [method = '', path] = line.split(' ')
      const headers = { [`${announcement.prefix}-API-KEY`]: keyOf(type), 'content-type': 'application/json' }
      const answer = await fetch(`${announcement.url}${path}`, { method, headers, body })
      await answer.arrayBuffer()
      return String(answer.status)
    },
    make: async (type, line, body) => (await request(announcement, keyOf(type), line, body)).json,
  })
  const seen = await weigh({ server, key: keyOf('private') }, async () => ({ [await work()]: 1 }))
  server.child.kill('SIGTERM')
  await server.ended
  place.remove()
  const { statuses, worstHealthMs, peakMB, ms } = seen
  const health = `/healthz at worst ${Math.round(worstHealthMs)} ms`
  console.log(
    `  ${Object.keys(statuses)} in ${Math.round(ms)} ms; ${health}, memory ${Math.round(peakMB)} MB`,
  )
  return worstHealthMs > MAX_HEALTH_MS ? [health] : []
}

const faults: string[] = []
for (const [name, prepare] of Object.entries(ATTACKS)) {
  console.log(name)
  faults.push(...(await attack(prepare)).map((fault) => `${name}: ${fault}`))
}
destinations.close()
for (const fault of faults) console.error(fault)
process.exitCode = faults.length === 0 ? 0 : 1
