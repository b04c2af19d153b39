/** Network tokens on a server: the clock, the control plane, events, forks and proxies. */
import t, { type Test } from 'tap'
import { startServer } from '../../src/index.js'
import { startReceiver } from '../delivery/receiver.js'

const NOW = '2030-01-15T12:00:00.000+00:00'
const DATA = { number: '4111111111111111', expiration_month: 10, expiration_year: 2031 }

async function open(t: Test, allowNet: string[] = []) {
  const server = await startServer({ allowNet })
  t.teardown(() => server.stop())
  await server.control.clock.set({ mode: 'frozen', at: NOW })
  const ask = server.ask.bind(server)
  const create = async (data: object = DATA) => ask('network-token create', { data })
  const statusOf = async (id: string) => (await ask('network-token get', { id })).status
  const { control } = server
  return { control, ask, create, statusOf }
}

t.test('a network token becomes inactive when the time in the setting has passed', async (t) => {
  const { control, ask, create, statusOf } = await open(t)
  const before = await create()
  await ask('config set', { name: 'network_tokens.inactive_after', value: '90d' })
  const made = await create({ ...DATA, number: '5555555555554444' })
  const suspended = await create({ ...DATA, number: '378282246310005' })
  const deleted = await create({ ...DATA, number: '4242424242424242' })
  await ask('network-token suspend', { id: suspended.id })
  await ask('network-token delete', { id: deleted.id })
  await control.clock.advance({ by: '2159h' })
  t.equal(await statusOf(made.id), 'active')
  await control.clock.advance({ by: '1h' })
  t.equal(await statusOf(made.id), 'inactive')
  t.equal(await statusOf(suspended.id), 'inactive')
  t.equal(await statusOf(before.id), 'active', 'it was created before the setting')
  const { modified_at, modified_by } = await ask('network-token get', { id: made.id })
  t.equal(modified_at, '2030-04-15T12:00:00.000+00:00')
  t.equal(modified_by, undefined)
  for (const operation of ['network-token suspend', 'network-token resume'] as const)
    await t.rejects(ask(operation, { id: made.id }), { code: 'conflict' })
  await t.rejects(ask('network-token cryptogram', { id: made.id }), { code: 'validation' })
  const { data } = await ask('log list', { entity_id: made.id })
  t.match(
    data.find(({ operation }) => operation === 'update'),
    {
      message: 'Network token became inactive',
      actor_type: 'system',
    },
  )
  await control.reset()
  t.equal((await ask('config get', { name: 'network_tokens.inactive_after' })).value, 'never')
})

t.test('the control plane can change the status of a network token, as the network would', async (t) => {
  const { control, ask, create, statusOf } = await open(t)
  const { id } = await create()
  for (const status of ['inactive', 'suspended', 'active'] as const) {
    t.match(await control.networkTokens.change({ id, status }), {
      id,
      status,
      data: { number: /^X{12}\d{4}$/ },
    })
    t.equal(await statusOf(id), status)
  }
  await t.rejects(control.networkTokens.change({ id: 'unknown', status: 'active' }), { code: 'not_found' })
  const { data } = await ask('log list', { entity_id: id, size: 100 })
  t.equal(
    data.filter(({ actor_type, operation }) => actor_type === 'system' && operation === 'update').length,
    3,
  )
})

t.test('the events of a network token contain neither its number nor the card number', async (t) => {
  const receiver = await startReceiver()
  t.teardown(() => receiver.close())
  const { url } = receiver
  const events = () =>
    receiver.received.map(({ body }) => body.event as { type: string; data: { network_token: object } })
  const { control, ask, create } = await open(t, ['127.0.0.1'])
  const names = ['created', 'updated', 'deleted', 'cryptogram.created'].map((name) => `network-token.${name}`)
  await ask('webhook create', { name: 'w', url, events: names })
  const { id: token_id } = await ask('token create', { type: 'card', data: DATA })
  const { id, created_by } = await ask('network-token create', { token_id })
  const number = (await ask('network-token get', { id }, { reveal: true })).data?.number ?? ''
  await create()
  await receiver.waitFor(1)
  await ask('network-token cryptogram', { id })
  await receiver.waitFor(2)
  await ask('network-token suspend', { id })
  await receiver.waitFor(3)
  await control.networkTokens.change({ id, status: 'inactive' })
  await receiver.waitFor(4)
  await ask('network-token delete', { id })
  await receiver.waitFor(5)
  const about = { id, token_id, created_by, created_at: NOW }
  const changed = { modified_by: created_by, modified_at: NOW }
  t.strictSame(
    events().map(({ type, data }) => [type, data.network_token]),
    [
      ['network-token.created', { ...about, status: 'active' }],
      ['network-token.cryptogram.created', { id }],
      ['network-token.updated', { ...about, status: 'suspended', ...changed }],
      ['network-token.updated', { ...about, status: 'inactive', modified_at: NOW }],
      ['network-token.deleted', { id }],
    ],
  )
  t.notOk(JSON.stringify(events()).includes(number))
  t.notMatch(JSON.stringify(events()), /4111111111111111/)
})

t.test('a snapshot restores network tokens, and a fork or a reset begins without them', async (t) => {
  const { control, ask, create, statusOf } = await open(t)
  const { id } = await create()
  const number = async (asking: typeof ask) =>
    (await asking('network-token get', { id }, { reveal: true })).data?.number
  const plain = await number(ask)
  await control.snapshots.create({ name: 's' })
  await ask('network-token suspend', { id })
  await control.snapshots.restore({ name: 's' })
  t.equal(await statusOf(id), 'active')
  t.equal(await number(ask), plain)
  const fork = await control.fork()
  await t.rejects(fork.control.networkTokens.change({ id, status: 'inactive' }), { code: 'not_found' })
  await control.reset()
  await t.rejects(ask('network-token get', { id }), { code: 'not_found' })
})

t.test('a network token that waits longer than a timer of Node can wait causes no warning', async (t) => {
  const { control, ask, create, statusOf } = await open(t)
  const warnings: string[] = []
  const note = ({ name }: Error) => void warnings.push(name)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  await ask('config set', { name: 'network_tokens.inactive_after', value: '90d' })
  const { id } = await create()
  // This jump of the clock makes the queue look at every waiting record.
  await control.clock.advance({ by: '1h' })
  t.equal(await statusOf(id), 'active')
  await new Promise(setImmediate)
  t.notOk(warnings.includes('TimeoutOverflowWarning'), `${warnings}`)
})

t.test('a proxy sends a network token to the destination, and a transform adds a cryptogram', async (t) => {
  const receiver = await startReceiver()
  t.teardown(() => receiver.close())
  const server = await startServer({ allowNet: ['127.0.0.1'] })
  t.teardown(() => server.stop())
  const { id } = await server.ask('network-token create', { data: DATA })
  const plain = (await server.ask('network-token get', { id }, { reveal: true })).data
  const permissions = ['network-token:cryptogram']
  const application = await server.ask('app create', { name: 'a', type: 'private', permissions })
  const code = `module.exports = async ({ args, svc }) => {
    const { cryptogram } = await svc.networkTokens.cryptogram('${id}')
    return { body: { ...args.body, cryptogram }, headers: args.headers }
  }`
  const { key } = await server.ask('proxy create', {
    name: 'p',
    destination_url: receiver.url,
    application: { id: application.id },
    request_transforms: [{ type: 'code', code }],
  })
  const part = (name: string) => `{{ network_token: ${id} | json: "$.data.${name}" }}`
  const send = () =>
    fetch(`${server.url}/proxy`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'svc-api-key': server.keys.private,
        'svc-proxy-key': key!,
      },
      body: JSON.stringify({
        number: part('number'),
        month: part('expiration_month'),
        year: part('expiration_year'),
      }),
    })
  const answer = await send()
  t.equal(answer.status, 200, await answer.text())
  const { number, expiration_month: month, expiration_year: year } = plain!
  const { cryptogram, ...sent } = receiver.received[0]!.body
  t.strictSame(sent, { number, month, year }, 'the date consists of numbers')
  t.match(cryptogram, /^[A-Za-z0-9+/]{22}==$/)
  await server.ask('network-token suspend', { id })
  t.equal((await send()).status, 400)
  t.equal(receiver.received.length, 1)
  const { data } = await server.ask('log list', { entity_id: id, size: 100 })
  t.equal(data.filter(({ message }) => message === 'Network token used').length, 1)
})
