/** `/_coffer/metrics`: who may read it, what it counts, and how many series it may have. */
import t from 'tap'
import { createVaultAnswerer } from '../../src/control/answerer.js'
import { openControlled } from '../../src/control/control-state.js'
import { createMetrics } from '../../src/control/metrics.js'
import { RequestCounts } from '../../src/control/request-counts.js'
import { startServer } from '../../src/index.js'

const PATH = '/_coffer/metrics'
const KEY = '9f86d081884c7d659a2feaa0c55ad015'
const SECRET = 'secret-4242424242424242'
/** A line of Prometheus' text format: a comment, or a sample. */
const LINE = /^(# (HELP|TYPE) coffer_[a-z_]+ .+|coffer_[a-z_]+(\{([a-z]+="[^"\\\n]*",?)+\})? [0-9.e+-]+)$/

async function open(isForOthers: boolean) {
  const { control, applications } = await openControlled({ tenantName: 'test' }, undefined)
  const answer = createVaultAnswerer({}, { control, key: KEY, isKeyForOthers: isForOthers, prefix: 'bt' })
  const get = (target: string, headers: Record<string, string> = {}, client = '192.0.2.7') => {
    const host = client === '127.0.0.1' ? 'localhost:4010' : '192.0.2.1:4010'
    const readBody = async () => Buffer.alloc(0)
    return answer({ method: 'GET', target, headers: { host, ...headers }, client, readBody })
  }
  return { control, get, keys: applications, own: { 'bt-control-key': KEY } }
}

t.test('metrics need the control key, as all paths of the control plane do', async (t) => {
  const { control, get, keys, own } = await open(true)
  t.teardown(() => control.close())
  for (const [what, status, headers] of [
    ['no key', 401, {}],
    ['a wrong key', 401, { 'bt-control-key': `${KEY}0` }],
    ['a management key', 401, { 'bt-api-key': keys.management!.key }],
    ['a page of another origin', 403, { ...own, origin: 'https://evil.example' }],
    ['a forwarded request', 403, { ...own, 'x-forwarded-for': '127.0.0.1' }],
    ['a rebound host', 421, { ...own, host: 'evil.example' }],
  ] as [string, number, Record<string, string>][]) {
    const { status: given, body } = await get(PATH, headers)
    t.equal(given, status, what)
    t.notMatch(body, 'coffer_')
  }
  const answer = await get(PATH, own)
  t.match(answer, { status: 200, headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } })
  const closed = await open(false)
  t.teardown(() => closed.control.close())
  t.equal((await closed.get(PATH, closed.own)).status, 403, 'the key is only for this machine')
})

t.test('metrics count requests, records and events, and contain neither ids nor data', async (t) => {
  await using server = await startServer()
  const { control, keys, url } = server
  const headers = { 'svc-api-key': keys.private!, 'content-type': 'application/json' }
  const body = JSON.stringify({ id: SECRET, type: 'token', data: SECRET, metadata: { note: SECRET } })
  await fetch(`${url}/tokens`, { method: 'POST', headers, body })
  for (const path of [SECRET, SECRET, 'no-such-token']) await fetch(`${url}/tokens/${path}`, { headers })
  await fetch(`${url}/${SECRET}/nowhere`, { headers })
  await server.ask('webhook create', { name: SECRET, url: 'https://example.com/', events: ['token.deleted'] })
  await server.ask('token delete', { id: SECRET })
  await control.webhooks({ count: 1, timeout: '300ms' })
  const read = async () => (await fetch(url + PATH, { headers: { 'svc-control-key': control.key } })).text()
  const text = await read()
  for (const line of text.trimEnd().split('\n')) t.match(line, LINE)
  for (const line of [
    'coffer_requests_total{operation="token create",status="201"} 1',
    'coffer_requests_total{operation="token get",status="200"} 2',
    'coffer_requests_total{operation="token get",status="404"} 1',
    'coffer_requests_total{operation="none",status="404"} 1',
    'coffer_request_duration_seconds_bucket{operation="token get",le="+Inf"} 3',
    'coffer_request_duration_seconds_count{operation="token get"} 3',
    'coffer_records{kind="token"} 0',
    'coffer_records{kind="application"} 3',
    'coffer_webhooks{state="blocked"} 1',
    'coffer_webhook_events_waiting 1',
  ])
    t.ok(text.split('\n').includes(line), line)
  t.match(text, /^coffer_log_records [1-9]\d*$/m)
  for (const hidden of [SECRET, keys.private!, control.key, server.tenant.id]) t.notOk(text.includes(hidden))
})

t.test('a client cannot increase the number of metric series', async (t) => {
  const counts = new RequestCounts()
  const add = (operation: string | undefined, status: number, ms = 1) =>
    counts.add({ method: 'GET', route: '-', operation, status, ms, traceId: '' })
  for (let status = 200; status < 600; status++) add('reactor react', status)
  for (let made = 0; made < 100; made++) add(undefined, 404)
  add('token get', 200, 0.5)
  add('token get', 200, 1)
  add('token get', 200, 99_000)
  const { control } = await openControlled({ tenantName: 'test' }, undefined)
  t.teardown(() => control.close())
  const text = await createMetrics(control.app, counts)()
  const series = (text.match(/^coffer_requests_total\{operation="reactor react"/gm) ?? []).length
  t.equal(series, 21)
  t.match(text, 'coffer_requests_total{operation="reactor react",status="other"} 380\n')
  t.match(text, 'coffer_request_duration_seconds_bucket{operation="token get",le="0.001"} 2\n')
  t.match(text, 'coffer_request_duration_seconds_bucket{operation="token get",le="10"} 2\n')
  t.match(text, 'coffer_request_duration_seconds_bucket{operation="token get",le="+Inf"} 3\n')
  t.match(text, 'coffer_request_duration_seconds_sum{operation="token get"} 99.0015\n')
})
