/**
 * Proxy calls to a vault with a control plane: what the list of requests shows of the calls, and faults of
 * destinations.
 */
import t from 'tap'
import { type Pause, watchDestination } from '../../src/control/faults.js'
import { answerWhole, type Outbound } from '../../src/framework/ports/outbound.js'
import { startServer } from '../../src/index.js'
import { startStub } from '../http/stub.js'

const NUMBER = '4242424242424242'

t.test(
  'the list of requests shows the destination and the response status of a proxy call, but no data',
  async (t) => {
    const stub = await startStub()
    t.teardown(() => stub.close())
    const server = await startServer({
      seed: { tokens: [{ id: 'card-1', type: 'card_number', data: NUMBER }] },
      allowNet: [`127.0.0.1:${stub.port}`],
    })
    t.teardown(() => server.stop())
    const { faults, requests } = server.control
    const call = async (url = stub.url) => {
      const answer = await fetch(`${server.url}/proxy/charges?q=1`, {
        method: 'POST',
        headers: {
          'svc-api-key': server.keys.private!,
          'svc-proxy-url': url,
          'content-type': 'application/json',
        },
        body: '{"number":"{{ card-1 }}"}',
      })
      const status = answer.headers.get('svc-proxy-destination-status')
      return { status: answer.status, destination: status, text: await answer.text() }
    }
    const latest = async () => (await requests.list()).at(-1)
    const uses = async () => {
      const { data } = await server.ask('log list', { entity_type: 'token', size: 100 })
      return data.filter(({ operation }) => operation === 'use').length
    }

    t.match(await call(), { status: 200, destination: '200' })
    const seen = { method: 'POST', path: '/proxy/charges', operation: 'proxy call' }
    t.match(await latest(), {
      ...seen,
      status: 200,
      destination: `${stub.url}/`,
      destination_status: 200,
      proxy_header: 'SVC-PROXY-URL',
      request: { number: '(12 characters)' },
    })
    stub.answer = (_, response) => response.writeHead(402).end(NUMBER)
    t.match(await call(), { status: 402, text: NUMBER })
    t.match(await latest(), { ...seen, status: 402, destination_status: 402 })
    t.match(await call('http://elsewhere.example'), { status: 403 })
    t.match(await latest(), { status: 403, destination: 'http://elsewhere.example/' })
    t.notOk('destination_status' in (await latest())!, 'the destination gave no response')
    t.notOk(JSON.stringify(await requests.list()).includes(NUMBER))

    stub.received.length = 0
    const before = await uses()
    await faults.set({ rules: [{ destination: 'timeout', operation: 'proxy call', times: 1 }] })
    t.match(await call(), { status: 408, destination: null, text: /did not answer within 25 s/ })
    t.match(await latest(), { fault: 'destination', status: 408, destination: `${stub.url}/` })
    t.match(await call(), { status: 402 }, 'once')
    t.equal(await uses(), before + 2, 'a destination that does not answer has still received the data')
    for (const destination of [502, '502']) {
      await faults.set({ rules: [{ destination }] })
      t.match(
        await call(),
        { status: 502, destination: '502', text: /^$/ },
        'the status is a response of the destination and not an error of the server',
      )
      t.match(await latest(), { fault: 'destination', destination_status: 502 })
      await server.as(server.keys.private).tokens.list()
      t.match(
        await faults.list(),
        [{ matched: 1, applied: 1 }],
        'the fault does not apply to requests without a destination',
      )
    }
    t.equal(stub.received.length, 1, 'only the call without a fault was sent')
  },
)

t.test('a proxy waits for a slow destination until 25 s have passed or the client disconnects', async (t) => {
  const waits: number[] = []
  const waited: Pause = async (ms) => void waits.push(ms)
  const sent: string[] = []
  const inner: Outbound = {
    requireListed: () => undefined,
    reach: () => ({
      send: async ({ body }, { sent }) => {
        sent()
        return answerWhole(200, {}, body)
      },
    }),
  }
  const request = { method: 'GET', target: '/', headers: {}, body: new Uint8Array() }
  const call = (fault: string, seen: object, pause = waited, left?: (listener: () => void) => void) => {
    const destination = watchDestination(fault, seen, pause)(inner).reach(new URL('http://a.example'))
    return destination.send(request, { sent: () => sent.push(fault), left })
  }
  const [late, slow] = [{}, {}]
  await t.rejects(call('30 s', late), { code: 'request_timeout', status: 408 })
  t.match(await call('20 s', slow), { status: 200 })
  t.same(waits, [25_000, 20_000])
  t.same(late, { destination: 'http://a.example/' })
  t.same(slow, { destination: 'http://a.example/', destination_status: 200 })
  const held: Pause = (_ms, _, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const lonely = call('20 s', {}, held, (leave) => setImmediate(leave))
  await t.rejects(lonely, { code: 'interrupted' })
  t.same(sent, ['30 s', '20 s'], 'a destination with a delayed response has received the request')
})
