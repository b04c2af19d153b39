import t from 'tap'
import { answerGiven } from '../../src/http/exchange.js'

const JSON_TYPE = 'application/json; charset=utf-8'

t.test('an answer that code gave is sent as it is, without rights in a browser', async (t) => {
  const cases: [[number, Record<string, string>, unknown], { type?: string; body: string }][] = [
    [[200, {}, { a: 1 }], { type: JSON_TYPE, body: '{"a":1}' }],
    [[200, {}, null], { type: JSON_TYPE, body: 'null' }],
    [[200, {}, 'text'], { type: 'text/plain; charset=utf-8', body: 'text' }],
    [[404, { 'content-type': 'text/html' }, '<p>'], { type: 'text/html', body: '<p>' }],
    [[200, { 'content-type': 'application/scim+json' }, [1]], { type: 'application/scim+json', body: '[1]' }],
    [[200, {}, undefined], { body: '' }],
    ...[204, 205, 304].map((status): (typeof cases)[number] => [[status, {}, 'text'], { body: '' }]),
  ]
  for (const [[status, headers, body], expected] of cases) {
    const answer = answerGiven(status, headers, body)
    t.same([answer.status, answer.body], [status, expected.body])
    t.equal(answer.headers['content-type'], expected.type)
    t.ok(new Response(answer.body || null, answer), 'it can be sent')
  }
  const own = {
    'content-security-policy': "default-src 'self'",
    'x-content-type-options': 'none',
    'x-own': 'a',
  }
  const { headers } = answerGiven(200, { ...own, 'cache-control': 'max-age=1' }, 'x')
  t.match(headers, {
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
    'x-own': 'a',
    'cache-control': 'max-age=1',
  })
  t.equal(answerGiven(200, {}, 'x').headers['cache-control'], 'no-store')
})
