/** The answer of a run is sent to the `callback_url` of the call that started the run. */
import t, { type Test } from 'tap'
import { openTestVault } from '../../src/index.js'
import { type Answer, startReceiver } from './receiver.js'

const NOW = '2030-01-15T12:00:00.000+00:00'
const CODE = `module.exports = async ({ args }) => {
  if (args.fail) throw Object.assign(new Error('refused'), { status: 402 })
  if (args.text) return { res: { body: '{"is":"text"}', headers: { 'content-type': 'application/vnd.x+json' } } }
  return { raw: args, tokenize: args.tokenize && { type: 'token', data: args.tokenize } }
}`

async function open(t: Test, answer?: Answer, runtime: object = {}) {
  const receiver = await startReceiver(answer)
  const vault = await openTestVault({ allowNet: ['127.0.0.1'] })
  t.teardown(async () => {
    await vault.stop()
    receiver.close()
  })
  await vault.control.clock.set({ mode: 'frozen', at: NOW })
  const { id } = await vault.ask('reactor create', { name: 'r', code: CODE, runtime: runtime as never })
  const react = async (body: object, path = 'react', headers: object = {}) => {
    const answer = await vault.fetch(`/reactors/${id}/${path}`, {
      method: 'POST',
      headers: { 'svc-api-key': vault.keys.private!, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  return { vault, receiver, react, id }
}

t.test('the answer of a run is sent to callback_url once and without a signature', async (t) => {
  const { vault, receiver, react } = await open(t)
  const callback_url = `${receiver.url}?order=1`
  t.match(await react({ args: { a: 1, tokenize: 'x' }, callback_url }), { status: 202, text: '' })
  await receiver.waitFor(1)
  const [sent] = receiver.received
  t.equal(sent!.url, '/events?order=1')
  t.match(sent!.body, { raw: { a: 1 }, tokens: { type: 'token', id: String } })
  t.equal((await vault.ask('token get', { id: sent!.body.tokens.id })).type, 'token')
  t.match(sent!.headers, { 'content-type': 'application/json', 'svc-signature': undefined })
  await vault.control.clock.advance({ by: '3h' })
  t.equal(receiver.received.length, 1, 'it is not sent again')
})

t.test('the callback of a failed run has the same problem document as the response of react', async (t) => {
  const { receiver, react } = await open(t)
  const answer = await react({ args: { fail: true } })
  await react({ args: { fail: true }, callback_url: receiver.url })
  await receiver.waitFor(1)
  const [{ body, headers }] = receiver.received as [(typeof receiver.received)[0]]
  const { instance: _, ...problem } = JSON.parse(answer.text)
  t.match(body, problem)
  t.equal(problem.status, 402)
  t.equal(headers['content-type'], 'application/problem+json')
})

t.test('the callback about a failed run is sent once', async (t) => {
  const { vault, receiver, react } = await open(t)
  await react({ args: { fail: true }, callback_url: receiver.url })
  await receiver.waitFor(1)
  await react({ args: { n: 2 }, callback_url: receiver.url })
  await receiver.waitFor(2)
  await vault.control.clock.advance({ by: '1h' })
  t.same(
    receiver.received.map(({ body }) => body.status ?? body.raw),
    [402, { n: 2 }],
  )
})

t.test('if reactor code returns res, the callback has the body and the content type of res', async (t) => {
  const { receiver, react } = await open(t, undefined, { image: 'node22' })
  await react({ args: { text: true }, callback_url: receiver.url })
  await receiver.waitFor(1)
  t.match(receiver.received[0], {
    text: '{"is":"text"}',
    headers: { 'content-type': 'application/vnd.x+json' },
  })
})

t.test('a callback that fails is sent at most ten times, with growing pauses', async (t) => {
  let clock = 0
  const times: number[] = []
  const { vault, receiver, react } = await open(t, (response) => {
    times.push(clock)
    response.writeHead(500).end()
  })
  await react({ args: { n: 1 }, callback_url: receiver.url })
  await receiver.waitFor(1)
  for (const seconds of [1, 4, 16, 64, 256, 1024, 2400, 2400, 2400]) {
    const stepMs = 250 * seconds
    const { length } = times
    while (times.length === length) {
      clock += stepMs
      await vault.control.clock.advance({ by: `${stepMs}ms` })
    }
    const pauseMs = times.at(-1)! - times.at(-2)!
    t.ok(pauseMs >= 1000 * seconds - stepMs && pauseMs <= 1000 * seconds + 2 * stepMs, `${seconds} s`)
  }
  await vault.control.clock.advance({ by: '12h' })
  t.equal(receiver.received.length, 10)
  t.ok(receiver.received.every(({ body }) => body.raw.n === 1))
})

t.test('a callback is not sent again after an answer with 2xx', async (t) => {
  let calls = 0
  const { vault, receiver, react } = await open(t, (response) =>
    response.writeHead(calls++ === 0 ? 503 : 204).end(),
  )
  await react({ args: {}, callback_url: receiver.url })
  await receiver.waitFor(1)
  while (receiver.received.length === 1) await vault.control.clock.advance({ by: '1s' })
  await vault.control.clock.advance({ by: '5h' })
  t.equal(receiver.received.length, 2)
})

t.test('a callback is sent only to hosts of --allow-net', async (t) => {
  const { vault, react, id } = await open(t)
  const refused = {
    'https://example.com/': /the host example.com is not on the list of --allow-net/,
    'http://10.0.0.1/': /10.0.0.1 is not on the list/,
    'http://user@127.0.0.1/': /must be an https or http URL/,
    'http://127.0.0.1/{{a}}': /must be an https or http URL/,
    'file:///etc/passwd': /must be an https or http URL/,
  }
  for (const [callback_url, message] of Object.entries(refused)) {
    const { status, text } = await react({ args: {}, callback_url })
    t.equal(status, 400, callback_url)
    t.match(JSON.parse(text).errors.callback_url[0], message)
  }
  t.match(await react({ args: {}, callback_url: 1 }), { status: 400 })
  t.match(await react({ args: {}, callback_url: 'http://127.0.0.1/' }, 'react-async'), {
    status: 400,
    text: /is not supported by react-async/,
  })
  t.same(await vault.ask('reactor logs', { id }), [], 'the code did not run')
})

t.test('if an expression in the arguments is invalid, no callback is sent', async (t) => {
  const { receiver, react } = await open(t)
  const args = { a: '{{ nobody }}' }
  t.match(await react({ args, callback_url: receiver.url }), { status: 400 })
  t.equal(receiver.received.length, 0)
})

t.test('a request that repeats an idempotency key causes no second callback', async (t) => {
  const { vault, receiver, react } = await open(t)
  const call = () =>
    react({ args: { n: 1 }, callback_url: receiver.url }, 'react', { 'svc-idempotency-key': 'once' })
  t.match(await call(), { status: 202, text: '' })
  t.match(await call(), { status: 202, text: '' })
  await receiver.waitFor(1)
  await vault.control.clock.advance({ by: '1h' })
  t.equal(receiver.received.length, 1)
})

t.test('in no-reveal mode, callback_url is refused', async (t) => {
  const { vault, receiver, id } = await open(t)
  await vault.ask('config set', { name: 'no_reveal', value: 'true' })
  await t.rejects(vault.ask('reactor react', { id, args: {}, callback_url: receiver.url } as never), {
    code: 'forbidden',
    message: /No-reveal mode refuses callback_url/,
  })
})

t.test('after a reactor is deleted, its waiting callbacks are not sent', async (t) => {
  const { vault, receiver, react, id } = await open(t, (response) => response.writeHead(500).end())
  await react({ args: {}, callback_url: receiver.url })
  await receiver.waitFor(1)
  await vault.ask('reactor delete', { id })
  await vault.control.clock.advance({ by: '3h' })
  t.equal(receiver.received.length, 1)
})
