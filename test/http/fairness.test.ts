/** Requests are answered roughly in the order in which they were sent, under load and while many clients connect. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { countOvertaken, type Exchange } from '../support/overtaken.js'
import { startServer } from '../support/service.js'
import { openTestVault } from '../support/test-vault.js'

const CONNECTIONS = 50
const REQUESTS_OF_EACH = 30
const BURST = 60
/** Limit on the number of later requests that are answered before an earlier request. */
const MAX_OVERTAKEN = 100
const HEAVY_MASK = `{{ data ${'| reveal_last: 4 '.repeat(10)}}}`

/**
 * Gives increasing numbers to the requests when they are sent, and to the answers when they arrive.
 */
class Trace {
  readonly exchanges: Exchange[] = []
  #events = 0

  send(): Exchange {
    const exchange = { sentAt: this.#events++, answeredAt: Number.POSITIVE_INFINITY }
    this.exchanges.push(exchange)
    return exchange
  }

  answer(exchange: Exchange): void {
    exchange.answeredAt = this.#events++
  }
}

async function sendOne(socket: Socket, text: string, trace: Trace): Promise<void> {
  const exchange = trace.send()
  socket.write(text)
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  trace.answer(exchange)
  if (!bytes.toString().startsWith('HTTP/1.1 201')) throw new Error(bytes.toString())
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

t.test(
  'the trace counts requests that were sent later and answered earlier than another request',
  async (t) => {
    const cases: [name: string, order: [sentAt: number, answeredAt: number][], expected: number][] = [
      ['no request', [], 0],
      [
        'one after the other',
        [
          [0, 1],
          [2, 3],
          [4, 5],
        ],
        0,
      ],
      [
        'at the same time, in their order',
        [
          [0, 3],
          [1, 4],
          [2, 5],
        ],
        0,
      ],
      [
        'the first request is answered last',
        [
          [0, 5],
          [1, 3],
          [2, 4],
        ],
        2,
      ],
      [
        'only the second request is overtaken',
        [
          [0, 1],
          [2, 9],
          [3, 4],
          [5, 6],
          [10, 11],
        ],
        2,
      ],
    ]
    for (const [name, order, expected] of cases)
      t.equal(countOvertaken(order.map(([sentAt, answeredAt]) => ({ sentAt, answeredAt }))), expected, name)
  },
)

t.test(
  'while many clients connect and send heavy expressions, no request waits behind many later requests',
  async (t) => {
    const vault = await openTestVault()
    const { app } = vault
    const { key } = await vault.createApplication('private', { permissions: ['token:create'] })
    const server = await startServer(app, { port: 0, addresses: ['127.0.0.1'] })
    t.teardown(async () => {
      await server.stop()
      await app.close()
    })
    const body = JSON.stringify({ type: 'token', data: '4242424242424242', mask: HEAVY_MASK })
    const head = `POST /tokens HTTP/1.1\r\nhost: localhost\r\nsvc-api-key: ${key}\r\ncontent-type: application/json\r\n`
    const text = `${head}content-length: ${body.length}\r\n\r\n${body}`
    const trace = new Trace()
    const sockets: Socket[] = []
    const sendMany = async (count: number) => {
      const socket = await open(server.port)
      sockets.push(socket)
      for (let sent = 0; sent < count; sent++) await sendOne(socket, text, trace)
    }
    const steady = Array.from({ length: CONNECTIONS }, () => sendMany(REQUESTS_OF_EACH))
    while (trace.exchanges.length < 300) await new Promise(setImmediate)
    const burst = Array.from({ length: BURST }, () => sendMany(1))
    await Promise.all([...steady, ...burst])
    for (const socket of sockets) socket.destroy()
    t.equal(trace.exchanges.length, CONNECTIONS * REQUESTS_OF_EACH + BURST)
    const worstOvertaken = countOvertaken(trace.exchanges)
    t.ok(worstOvertaken <= MAX_OVERTAKEN, `one request was overtaken by ${worstOvertaken} later requests`)
    t.comment(`a request was overtaken by at most ${worstOvertaken} later requests`)
  },
)
