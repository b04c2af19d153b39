import t from 'tap'
import {
  attributesOf,
  EVENT_TYPES,
  type EventType,
  SENT_EVENT_TYPES,
} from '../../../src/domain/webhook/events.js'
import { sampleEvent, setValues } from '../../../src/domain/webhook/sample-event.js'

const tools = { createUuid: () => '00000000-0000-4000-8000-000000000000', now: Date.UTC(2030, 0, 15) }

t.test(
  'a sample event contains an object of the kind that its type names, and this object has an id',
  async (t) => {
    const objects: Record<string, string> = {
      'token.property.expired': 'token',
      'tenant.invitation.created': 'invitation',
      'tenant.member.deleted': 'member',
      'application.key.created': 'application_key',
      'token-intent.converted': 'token_intent',
      '3ds.session.method-completed': 'session',
      'account-updater.job.failed': 'job',
      'google-pay.created': 'google_pay',
    }
    for (const type of EVENT_TYPES) {
      const data = sampleEvent(type, tools)
      const expected = objects[type]
      if (expected !== undefined) t.equal(Object.keys(data)[0], expected, type)
      if (type !== 'http.request') t.match(Object.values(data)[0], { id: tools.createUuid() }, type)
      for (const value of Object.values(data)) t.equal(typeof value, 'object', type)
    }
  },
)

t.test('a sample of an event that the server itself sends has all documented attributes', async (t) => {
  for (const type of SENT_EVENT_TYPES) {
    const [about] = Object.values(sampleEvent(type, tools))
    // A card comes from a token or from a token intent. In samples, it comes from a token.
    const expected = attributesOf(type as EventType).filter((name) => name !== 'token_intent_id')
    t.strictSame(Object.keys(about!), expected, type)
    for (const [name, each] of Object.entries(about!)) t.not(each, undefined, `${type}: ${name}`)
  }
  const statuses = ['created', 'completed', 'failed'].map(
    (end) => (sampleEvent(`account-updater.job.${end}`, tools).job as { status: string }).status,
  )
  t.strictSame(statuses, ['pending', 'completed', 'failed'])
  t.strictSame(sampleEvent('proxy.updated', tools).proxy, {
    id: tools.createUuid(),
    name: 'sample',
    application_id: tools.createUuid(),
    destination_url: 'https://example.com/payments',
    require_authentication: true,
    created_by: tools.createUuid(),
    created_at: '2030-01-15T00:00:00.000+00:00',
    modified_by: tools.createUuid(),
    modified_at: '2030-01-15T00:00:00.000+00:00',
  })
})

t.test(
  'a value of a sample event is set by its path, and missing objects of the path are created',
  async (t) => {
    const data = { token: { id: 'a', type: 'card' } }
    t.strictSame(setValues(data, { 'token.type': 'bank', 'token.metadata.order.id': 7, 'extra.a': null }), {
      token: { id: 'a', type: 'bank', metadata: { order: { id: 7 } } },
      extra: { a: null },
    })
    t.strictSame(data, { token: { id: 'a', type: 'card' } }, 'the given event does not change')
  },
)

t.test('the path of a value in a sample event must lead into an object', async (t) => {
  const wrong = [
    'token',
    '',
    '.',
    'token.',
    '.type',
    'token..type',
    'token.id.x',
    '__proto__.a',
    'token.__proto__',
    'a b.c',
  ]
  for (const path of [...wrong, 'a.b.c.d.e.f.g.h.i'])
    t.strictSame(setValues({ token: { id: 'a' } }, { [path]: 1 }), { wrongPath: path }, JSON.stringify(path))
})
