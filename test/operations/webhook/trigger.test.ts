/** Events that somebody triggers, although they did not happen. */
import t, { type Test } from 'tap'
import { openTestVault } from '../../../src/index.js'
import { isSigned, startReceiver } from '../../delivery/receiver.js'

async function open(t: Test) {
  const receiver = await startReceiver()
  const vault = await openTestVault({ allowNet: ['127.0.0.1'] })
  t.teardown(async () => {
    await vault.stop()
    receiver.close()
  })
  const create = (name: string, events: readonly string[]) =>
    vault.ask('webhook create', { name, url: `${receiver.url}/${name}`, events })
  return { vault, receiver, create }
}

t.test(
  'every documented type of event can be triggered, and the event is delivered with a signature',
  async (t) => {
    const { vault, receiver, create } = await open(t)
    const key = await (await vault.fetch('/keys/webhooks.v1.key')).text()
    const types = await vault.ask('webhook event-types')
    const hook = await create('all', types)
    const tenant_id = vault.tenant.id
    for (const event of types) {
      const answer = await vault.ask('webhook trigger', { event })
      t.strictSame({ event: answer.event, webhooks: answer.webhooks }, { event, webhooks: [hook.id] })
    }
    await vault.control.webhooks({ count: types.length, timeout: '1m' })
    const received = receiver.received.filter(({ body }) => types.includes(body.event.type))
    t.strictSame(received.map(({ body }) => body.event.type).sort(), [...types].sort())
    for (const each of received) {
      t.ok(isSigned(each, key), each.body.event.type)
      t.match(each.body.event, { tenant_id, data: { actor: { type: 'user' } } })
    }
  },
)

t.test(
  'a triggered event goes to the webhooks that subscribe to its type, or to the webhook that the request names',
  async (t) => {
    const { vault, receiver, create } = await open(t)
    const cards = await create('cards', ['token.created'])
    const other = await create('other', ['token.deleted'])
    const set = { 'token.type': 'bank', 'token.metadata.order': '7' }
    const first = await vault.ask('webhook trigger', { event: 'token.created', set })
    t.strictSame(first.webhooks, [cards.id])
    const second = await vault.control.trigger({ event: 'google-pay.created', webhook: other.id })
    t.strictSame(second.webhooks, [other.id])
    const deliveries = await vault.control.webhooks({ count: 2, timeout: '1m' })
    t.match(deliveries, [
      { webhook_id: cards.id, type: 'token.created', state: 'sent' },
      { webhook_id: other.id, type: 'google-pay.created', state: 'sent' },
    ])
    t.match(receiver.received[0]!.body.event.data, { token: { type: 'bank', metadata: { order: '7' } } })
    t.match(
      (await vault.ask('webhook deliveries', { event: 'google-pay.created' })).data,
      [{ webhook_id: other.id }],
      'deliveries are listed by a type that the server does not send by itself',
    )
    t.match((await vault.ask('log list', { entity_type: 'webhook' })).data[0], {
      entity_id: other.id,
      operation: 'update',
      message: 'Webhook event triggered',
    })
  },
)

t.test('if a triggered event cannot be sent, the request is refused with the reason', async (t) => {
  const { vault, create } = await open(t)
  const trigger = (input: object) => vault.ask('webhook trigger', { event: 'token.created', ...input })
  await t.rejects(trigger({}), { code: 'unprocessable', message: /coffer webhook create/ })
  const hook = await create('cards', ['token.created'])
  await t.rejects(trigger({ event: 'token.creatd' }), { code: 'validation', message: /token\.created/ })
  await t.rejects(trigger({ set: { token: 1 } }), { code: 'validation', errors: { set: [/token/] } })
  await t.rejects(trigger({ set: { 'token.note': 'x'.repeat(70_000) } }), { code: 'validation' })
  await t.rejects(trigger({ webhook: '11111111-1111-4111-8111-111111111111' }), { code: 'not_found' })
  const { id, name, url, events } = hook
  await vault.ask('webhook update', { id, name, url, events, status: 'disabled' })
  await t.rejects(trigger({ webhook: id }), { code: 'conflict' })
  await t.rejects(trigger({}), { code: 'unprocessable' }, 'a disabled webhook does not count as subscriber')
})
