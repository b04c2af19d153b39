/** Events past the death of the server: killed between the commit and the delivery, and while it waits for the answer. */
import { once } from 'node:events'
import t from 'tap'
import { createWorkplace, request, runCommand, startProcess } from '../http/process.js'
import { startReceiver } from './receiver.js'

t.setTimeout(180_000)

const ROUNDS = 3
const OF_ROUND = 8

t.test('an event whose server was killed is delivered after the restart, with its id', async (t) => {
  const receiver = await startReceiver()
  const place = createWorkplace()
  t.teardown(() => {
    receiver.close()
    place.remove()
  })
  const init = await runCommand(place, ['init', '--quiet'])
  t.equal(init.code, 0, init.stderr)
  const start = (words: readonly string[] = []) => startProcess(place, ['--allow-net', '127.0.0.1', ...words])
  let server = await start(['--starter-apps'])
  const { management, private: backend } = server.announcement.applications
  const hook = { name: 'hook', url: receiver.url, events: ['token.created'] }
  t.equal((await request(server.announcement, management?.key, 'POST /webhooks', hook)).status, 201)
  const create = (id: string) =>
    request(server.announcement, backend?.key, 'POST /tokens', { id, type: 'token', data: 'x' })
  const expected: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    // While the receiver says nothing, each event is committed and none is delivered.
    receiver.state.answer = () => {}
    const ids = Array.from({ length: OF_ROUND }, (_, at) => `token-${round}-${at}`)
    const made = await Promise.all(ids.map(create))
    t.ok(made.every(({ status }) => status === 201))
    server.child.kill('SIGKILL')
    await once(server.child, 'exit')
    expected.push(...ids)
    receiver.state.answer = (response) => response.end()
    const before = receiver.received.length
    server = await start()
    await receiver.waitFor(before + OF_ROUND)
  }
  const delivered = () => receiver.received.map(({ body }) => body.event.data.token.id as string)
  t.same([...new Set(delivered())].sort(), expected.sort(), 'none is lost')
  const ids = new Map<string, string>()
  for (const { body } of receiver.received) {
    const { id, data } = body.event
    t.equal(ids.get(data.token.id) ?? id, id, 'a repeat has the same id')
    ids.set(data.token.id, id)
  }
  const { length } = receiver.received
  server.child.kill('SIGTERM')
  await server.ended
  const listed = await runCommand(place, ['webhook', 'deliveries', '--size', '100'])
  const { data } = JSON.parse(listed.stdout) as { data: { state: string; attempts: number }[] }
  t.equal(data.length, ROUNDS * OF_ROUND)
  t.ok(data.every(({ state, attempts }) => state === 'sent' && attempts === 1))
  t.equal(receiver.received.length, length, 'what was delivered is not sent again')
})

t.test('a server says once that a host is not allowed, and sends when it is', async (t) => {
  const receiver = await startReceiver()
  const place = createWorkplace()
  t.teardown(() => {
    receiver.close()
    place.remove()
  })
  await runCommand(place, ['init', '--quiet'])
  const server = await startProcess(place, ['--starter-apps'])
  const { management, private: backend } = server.announcement.applications
  const hook = { name: 'hook', url: receiver.url, events: ['token.created'] }
  await request(server.announcement, management?.key, 'POST /webhooks', hook)
  for (let count = 0; count < 3; count++)
    await request(server.announcement, backend?.key, 'POST /tokens', { type: 'token', data: 'x' })
  server.child.kill('SIGTERM')
  const { stderr } = await server.ended
  t.equal(stderr.match(/Webhook "hook": .*--allow-net/g)?.length, 1, stderr)
  t.notMatch(stderr, receiver.url)
  t.equal(receiver.received.length, 0)
  const words = ['webhook', 'deliveries', '-o', 'id']
  const [id = ''] = (await runCommand(place, words)).stdout.split('\n')
  const sent = await runCommand(place, ['webhook', 'resend', id, '--allow-net', '127.0.0.1'])
  t.equal(sent.code, 0, sent.stderr)
  t.equal(receiver.received.length, 1, 'a command sends before it ends')
})

t.test('the event of a read is sent at once, though a read is answered before it is synced', async (t) => {
  const receiver = await startReceiver()
  const place = createWorkplace()
  t.teardown(() => {
    receiver.close()
    place.remove()
  })
  await runCommand(place, ['init', '--quiet'])
  const { announcement, child, ended } = await startProcess(place, [
    ...['--starter-apps', '--allow-net', '127.0.0.1'],
  ])
  const { management, private: backend } = announcement.applications
  const hook = { name: 'hook', url: receiver.url, events: ['token.read'] }
  await request(announcement, management?.key, 'POST /webhooks', hook)
  const token = { id: 'token-1', type: 'token', data: 'x' }
  await request(announcement, backend?.key, 'POST /tokens', token)
  const beganMs = performance.now()
  for (let count = 1; count <= OF_ROUND; count++) {
    const path = count % 2 === 0 ? '/tokens' : '/tokens/token-1'
    await request(announcement, backend?.key, `GET ${path}`)
    await receiver.waitFor(count)
  }
  t.ok(performance.now() - beganMs < 20_000, 'none waits for what the server resumes every 30 s')
  child.kill('SIGTERM')
  await ended
})

t.test('a command shows one delivery with its payload', async (t) => {
  const place = createWorkplace()
  t.teardown(() => place.remove())
  const run = async (line: string) => {
    const { code, stdout, stderr } = await runCommand(place, line.split(' '))
    if (code !== 0) throw new Error(stderr)
    return stdout
  }
  await run('init --quiet')
  await run('webhook create --name hook --address https://example.com/a --event token.created --quiet')
  await run('token create --type token --data text --quiet')
  const id = (await run('webhook deliveries hook -o id')).trim()
  await run('webhook update hook --name hook --address https://example.com/a --event token.read --quiet')
  await run('token list')
  const [read] = JSON.parse(await run('webhook deliveries hook')).data
  t.match(read, { payload: { event: { type: 'token.read' } }, failure: /cannot be called/ }, 'it was tried')
  const shown = await run(`webhook deliveries ${id} -o table`)
  t.match(shown, /^id: +[0-9a-f-]{36}\n/)
  t.match(shown, /payload: +\{"event":\{.*"type":"token\.created"/)
  t.match(shown, /failure: +The destination cannot be called/)
})
