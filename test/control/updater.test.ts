/** Batch jobs of the account updater on a server: files, states, the clock, events, resets and forks. */
import { execFile } from 'node:child_process'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { MAX_FILE_BYTES } from '../../src/domain/updater/request-file.js'
import { startServer } from '../../src/index.js'
import { startReceiver } from '../delivery/receiver.js'
import { UPDATER_CARDS as published } from '../support/published-cards.js'

type Job = {
  id: string
  status: string
  upload_url?: string
  uploadUrl: string
  download_url?: string
  results?: Record<string, number>
  requests?: number
  errors?: string[]
} & Record<string, unknown>

const NOW = '2030-01-15T12:00:00.000+00:00'
const LATER = '2030-01-15T13:00:00.000+00:00'
const HEAD =
  'token,expiration_year,expiration_month,new_token,new_expiration_year,new_expiration_month,result_code'
const LONG = '1m'

async function open(t: Test, { allowNet = [] as string[] } = {}) {
  const server = await startServer({ allowNet })
  t.teardown(() => server.stop())
  const { control, keys, url } = server
  await control.clock.set({ mode: 'frozen', at: NOW })
  const asking =
    (key: string) =>
    async (line: string, body?: object): Promise<{ status: number; body: Job }> => {
      const [method = '', path = ''] = line.split(' ')
      const answer = await fetch(url + path, {
        method,
        headers: { 'svc-api-key': key, ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status: answer.status, body: (await answer.json()) as Job }
    }
  const send = asking(keys.private!)
  const store = async (number: string, date: object = { expiration_month: 12, expiration_year: 2023 }) =>
    (await server.ask('token create', { type: 'card', data: { number, ...date } })).id
  const create = async (body: object = {}) => (await send('POST /account-updater/jobs', body)).body
  const get = async (id: string) => (await send(`GET /account-updater/jobs/${id}`)).body
  const upload = (job: Job, text: string) => fetch(job.uploadUrl, { method: 'PUT', body: text })
  /** Waits for the end of the work that the server does in the background. */
  const settle = () => control.clock.advance({ by: '1s' })
  const run = async (text: string, body: object = {}) => {
    const job = await create(body)
    t.equal((await upload(job, text)).status, 200)
    await settle()
    return get(job.id)
  }
  const download = async (job: Job) => (await fetch(job.download_url!)).text()
  return { server, control, url, send, asking, store, create, get, upload, settle, run, download }
}

t.test(
  'the result of a batch has the documented code for each published card, and has no row for a card without an update',
  async (t) => {
    const { store, run, download } = await open(t)
    const ids: string[] = []
    for (const { number } of published) ids.push(await store(number))
    const job = await run(`token\n${ids.join('\n')}\n`)
    t.match(job, { status: 'completed', requests: 39 })
    const expected: Record<string, number> = {}
    for (const { result_code } of published) expected[result_code] = (expected[result_code] ?? 0) + 1
    t.strictSame(job.results, expected)
    const lines = (await download(job)).trimEnd().split('\n')
    t.equal(lines.shift(), HEAD)
    const shown = lines.map((line) => line.split(','))
    const updated = published.filter(({ result_code }) => result_code !== 'NO_UPDATE')
    t.equal(updated.length, 37)
    t.strictSame(
      shown.map(([token, , , , , , code]) => [token, code]),
      updated.map(({ number, result_code }) => [
        ids[published.findIndex((card) => card.number === number)],
        result_code,
      ]),
      'in the order of the file',
    )
    for (const [at, { new_number, new_expiration_year }] of updated.entries()) {
      const [, , , token, year, month] = shown[at]!
      t.equal(token !== '', new_number !== undefined || new_expiration_year !== undefined)
      t.strictSame([year, month], new_expiration_year === undefined ? ['', ''] : ['26', '12'])
    }
  },
)

t.test(
  'a job has the documented attributes in each state, both in snake case and in camel case',
  async (t) => {
    const { url, send, store, upload, get, settle, server, download } = await open(t)
    const created = await send('POST /account-updater/jobs')
    t.equal(created.status, 201, 'without a body')
    const job = created.body
    const pending = {
      ...{ id: job.id, tenant_id: server.tenant.id, tenantId: server.tenant.id, status: 'pending' },
      ...{ created_by: String, createdBy: job.created_by, created_at: NOW, createdAt: NOW },
      ...{ expires_at: LATER, expiresAt: LATER, upload_url: job.uploadUrl, uploadUrl: String },
    }
    t.match(job, pending)
    t.ok(job.uploadUrl.startsWith(`${url}/account-updater/files/${job.id}?secret=`), job.uploadUrl)
    t.strictSame(Object.keys(job).sort(), Object.keys(pending).sort())
    t.strictSame(await get(job.id), job)
    const old = await store('4111111111111111')
    t.equal((await upload(job, `token,expiration_year,expiration_month\n${old},30,02\n`)).status, 200)
    await settle()
    const done = await get(job.id)
    const names = [
      'id',
      'tenant_id',
      'tenantId',
      'status',
      'created_by',
      'createdBy',
      'created_at',
      'createdAt',
    ]
    const ended = [...names, 'uploadUrl', 'requests', 'results', 'download_url', 'downloadUrl']
    t.strictSame(Object.keys(done).sort(), ended.sort())
    t.match(done, { status: 'completed', uploadUrl: job.uploadUrl, requests: 1, results: { UPD_PAN: 1 } })
    t.equal(done.downloadUrl, done.download_url)
    const answer = await fetch(done.download_url!)
    t.equal(answer.headers.get('content-type'), 'text/csv; charset=utf-8')
    const [head, row] = (await answer.text()).trimEnd().split('\n')
    const token = row!.split(',')[3]
    t.equal(`${head}\n${row}`, `${HEAD}\n${old},30,02,${token},,,UPD_PAN`, 'byte for byte')
    t.equal((await server.ask('token get', { id: token! })).created_by, job.created_by)
    t.equal(await download(done), await download(done), 'as often as wanted')
    t.equal((await fetch(done.download_url!, { method: 'HEAD' })).status, 200)
  },
)

t.test(
  'the upload address of a job that is created without a socket is an address of the server, and works',
  async (t) => {
    const { server, url, upload } = await open(t)
    const fork = await server.control.fork()
    for (const vault of [server, fork]) {
      const headers = { 'svc-api-key': vault.keys.private ?? '', 'content-type': 'application/json' }
      const answer = await vault.fetch('/account-updater/jobs', { method: 'POST', headers, body: '{}' })
      const asked = (await vault.ask('updater job create')) as Job
      for (const job of [(await answer.json()) as Job, asked]) {
        t.ok(job.uploadUrl.startsWith(`${url}/`), 'the upload address names the port of the server')
        t.equal((await upload(job, HEAD)).status, 200)
      }
    }
  },
)

t.test('each version of the result format adds its new columns at the end', async (t) => {
  const { store, run, download, server, send } = await open(t)
  const old = await store('4012888888881881')
  for (const [result_version, names, most] of [
    ['1.1', 'new_fingerprint,new_brand', 2],
    ['1.2', 'new_fingerprint,new_brand,new_last4', 3],
  ] as const) {
    const [head, row] = (await download(await run(`token\n${old}\n`, { result_version })))
      .trimEnd()
      .split('\n')
    t.equal(head, `${HEAD},${names}`)
    const [, , , id, year, month, code, ...more] = row!.split(',')
    t.strictSame([year, month, code], ['26', '12', 'UPD_PAN'])
    const { fingerprint } = await server.ask('token get', { id: id! })
    t.strictSame(more, [fingerprint, 'visa', '0006'].slice(0, most))
  }
  const wrong = await send('POST /account-updater/jobs', { result_version: '2' })
  t.equal(wrong.status, 400)
  t.ok((wrong.body.errors as unknown as object)['result_version' as never])
})

t.test(
  'a file for a job can be uploaded with curl or as a stream, with any content type and without a key',
  async (t) => {
    const { create, get, settle, store } = await open(t)
    const text = `token\n${await store('4539097887163333')}\n`
    const [one, two] = [await create(), await create()]
    const curl = execFile('curl', ['-sS', '-f', '-T', '-', one.uploadUrl])
    curl.stdin?.end(text)
    await new Promise((resolve, reject) => {
      curl.once('exit', (code) => (code === 0 ? resolve(code) : reject(new Error(`curl: ${code}`))))
    })
    const body = Readable.toWeb(Readable.from([Buffer.from(text)])) as ReadableStream
    const headers = { 'content-type': 'application/octet-stream' }
    const streamed = await fetch(two.uploadUrl, {
      method: 'PUT',
      body,
      headers,
      duplex: 'half',
    } as RequestInit)
    t.equal(streamed.status, 200)
    t.equal(await streamed.text(), '')
    await settle()
    for (const { id } of [one, two])
      t.match(await get(id), { status: 'completed', results: { UPD_EXP_DATE: 1 } })
  },
)

t.test('a file that cannot be processed makes the job fail', async (t) => {
  const { run, create, upload, get, settle, server } = await open(t)
  const failed = await run('')
  t.match(failed, {
    status: 'failed',
    errors: ['File cannot be empty'],
    download_url: undefined,
    results: undefined,
  })
  t.match(await run('id\na\n'), { status: 'failed', errors: [/column token/] })
  const job = await create()
  await fetch(job.uploadUrl, { method: 'PUT', body: new Uint8Array([116, 255, 10]) })
  await settle()
  t.match(await get(job.id), { status: 'failed', errors: ['File must be UTF-8'] })
  const large = await create()
  t.equal((await upload(large, 'a'.repeat(MAX_FILE_BYTES + 1))).status, 413)
  t.match(await get(large.id), { status: 'pending' }, 'nothing is kept, and a smaller file may follow')
  t.equal((await upload(large, 'token\nunknown\n')).status, 200)
  await settle()
  t.match(await get(large.id), { status: 'completed', results: { ERR_INVALID_TOKEN: 1 } })
  t.match((await server.ask('log list', { entity_type: 'account_updater_job', entity_id: failed.id })).data, [
    { operation: 'read' },
    { operation: 'update', message: 'Account updater job failed', actor_type: 'system' },
    { operation: 'create', actor_type: 'application' },
  ])
})

t.test('a row with an invalid token or date gets an error code in the result of the job', async (t) => {
  const { run, store, server, download } = await open(t)
  const discover = await store('6011111111111117')
  const undated = await store('4111111111111111', {})
  const text = await server.ask('token create', { type: 'token', data: 'x' })
  const job = await run(
    `token,expiration_month,expiration_year\n${discover},,\n${undated},,\n${undated},12,23\n${undated},13,23\n${text.id},,\n,,\n`,
  )
  const codes = (await download(job))
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',').at(-1))
  t.strictSame(codes, [
    'UPD_PAN',
    'ERR_INVALID_EXP_DATE',
    'UPD_PAN',
    'ERR_INVALID_EXP_DATE',
    'ERR_INVALID_TOKEN',
    'ERR_INVALID_TOKEN',
  ])
})

t.test('a file of many rows is processed in parts, each row once', async (t) => {
  const { run, store, download, server } = await open(t)
  const old = await store('4111111111111111')
  const job = await run(`token\n${`${old}\n`.repeat(260)}`, { deduplicate_tokens: false })
  t.match(job, { status: 'completed', requests: 260, results: { UPD_PAN: 260 } })
  const tokens = (await download(job))
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',')[3])
  t.equal(new Set(tokens).size, 260)
  t.equal((await server.ask('token list')).pagination.total_items, 261)
  const again = await run(`token\n${`${old}\n`.repeat(30)}`, { deduplicate_tokens: true })
  const found = (await download(again))
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',')[3])
  t.equal(new Set(found).size, 1, 'with deduplication, all rows have the same existing token')
})

t.test(
  'a job whose file is not uploaded in time is removed, and upload and download addresses are accepted only as documented',
  async (t) => {
    const { create, upload, send, control, settle, get, asking, server } = await open(t)
    const late = await create()
    await control.clock.advance({ by: '1h' })
    t.equal((await send(`GET /account-updater/jobs/${late.id}`)).status, 404)
    t.equal((await upload(late, 'token\na\n')).status, 403)
    const job = await create()
    const put = (url: string) => fetch(url, { method: 'PUT', body: 'token\na\n' })
    t.equal((await put(job.uploadUrl.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')))).status, 403)
    t.equal((await put(job.uploadUrl.replace(/\?.*/, ''))).status, 403)
    t.equal((await put(job.uploadUrl.replace(job.id, late.id))).status, 403)
    t.equal((await fetch(job.uploadUrl)).status, 403, 'a download before the end')
    t.equal((await fetch(job.uploadUrl, { method: 'POST' })).status, 405)
    t.equal((await put(job.uploadUrl)).status, 200)
    t.equal((await put(job.uploadUrl)).status, 403, 'a second upload')
    await settle()
    t.equal((await put(job.uploadUrl)).status, 403)
    const { download_url = '' } = await get(job.id)
    t.equal((await fetch(download_url)).status, 200)
    t.equal((await fetch(job.uploadUrl)).status, 403, 'the secret is only for the upload')
    await control.clock.advance({ by: '1h' })
    t.equal((await fetch(download_url)).status, 403)
    const none = await server.ask('app create', { name: 'n', type: 'private', permissions: ['token:read'] })
    const refused = asking(none.key!)
    t.equal((await refused('POST /account-updater/jobs')).status, 403)
    t.equal((await refused(`GET /account-updater/jobs/${job.id}`)).status, 403)
    const secrets = [job.uploadUrl, download_url].map(
      (address) => new URL(address).searchParams.get('secret')!,
    )
    const requests = JSON.stringify(await control.requests.list())
    for (const secret of secrets) t.notOk(requests.includes(secret), 'recorded requests have no secret')
  },
)

t.test(
  'with a delay, a job has the state processing until the clock is advanced, and then its events arrive',
  async (t) => {
    const receiver = await startReceiver()
    t.teardown(() => receiver.close())
    const { server, create, upload, get, control, settle, run } = await open(t, { allowNet: ['127.0.0.1'] })
    const events = [
      'account-updater.job.created',
      'account-updater.job.completed',
      'account-updater.job.failed',
    ]
    await server.ask('webhook create', { name: 'w', url: receiver.url, events })
    await server.ask('config set', { name: 'account_updater.delay', value: '1h' })
    const job = await create()
    await upload(job, 'token\na\n')
    await settle()
    t.match(await get(job.id), { status: 'processing', upload_url: undefined, uploadUrl: job.uploadUrl })
    t.equal((await get(job.id)).requests, undefined)
    await control.clock.advance({ by: '1h' })
    t.match(await get(job.id), { status: 'completed' })
    await server.ask('config unset', { name: 'account_updater.delay' })
    const failed = await run('')
    await control.webhooks({ count: 4, timeout: LONG })
    const seen = receiver.received.map(({ body: { event } }) => ({
      type: event.type.replace('account-updater.job.', ''),
      job: event.data.job,
      actor: event.data.actor.type,
    }))
    t.strictSame(
      seen.sort((a, b) => (a.type < b.type ? -1 : 1)),
      [
        { type: 'completed', job: { id: job.id, status: 'completed' }, actor: 'system' },
        { type: 'created', job: { id: job.id, status: 'pending' }, actor: 'application' },
        { type: 'created', job: { id: failed.id, status: 'pending' }, actor: 'application' },
        { type: 'failed', job: { id: failed.id, status: 'failed' }, actor: 'system' },
      ].sort((a, b) => (a.type < b.type ? -1 : 1)),
    )
  },
)

t.test('jobs are listed newest first, with a cursor for the next page', async (t) => {
  const { create, send, run } = await open(t)
  const ids = [(await create()).id, (await run('token\na\n')).id, (await create()).id].reverse()
  const page = async (query: string) => {
    const { body } = await send(`GET /account-updater/jobs${query}`)
    return body as unknown as { pagination: { page_size: number; next?: string }; data: Job[] }
  }
  const all = await page('')
  t.strictSame(
    all.data.map(({ id }) => id),
    ids,
    'parts of files are no jobs',
  )
  t.strictSame(all.pagination, { page_size: 20 })
  const seen: string[] = []
  for (let start: string | undefined = ''; start !== undefined; ) {
    const { data, pagination } = await page(`?size=1${start && `&start=${encodeURIComponent(start)}`}`)
    seen.push(...data.map(({ id }) => id))
    start = pagination.next
  }
  t.strictSame(seen, ids)
})

t.test(
  'a reset ends a job in progress, and afterwards neither the job nor any token of the job exists',
  async (t) => {
    const { server, control, create, upload, store } = await open(t)
    const old = await store('4111111111111111')
    const job = await create()
    await upload(job, `token\n${`${old}\n`.repeat(2000)}`)
    await control.reset()
    await control.clock.advance({ by: '2h' })
    t.equal((await server.ask('token list', { type: ['card'] })).pagination.total_items, 0)
    t.strictSame((await server.ask('updater job list')).data, [])
  },
)

t.test('a file that is uploaded for a job of a fork is processed in the fork', async (t) => {
  const { control, asking, url } = await open(t)
  const fork = await control.fork()
  const send = asking(fork.keys.private!)
  const { body: job } = await send('POST /account-updater/jobs')
  t.ok(job.uploadUrl.startsWith(url))
  t.equal((await fetch(job.uploadUrl, { method: 'PUT', body: 'token\na\n' })).status, 200)
  await fork.control.clock.advance({ by: '1s' })
  const { body: done } = await send(`GET /account-updater/jobs/${job.id}`)
  t.equal(done.status, 'completed')
  t.match(await (await fetch(done.download_url!)).text(), /ERR_INVALID_TOKEN/)
})

t.test('a public application cannot have permissions for the account updater', async (t) => {
  const { server } = await open(t)
  for (const permission of ['account-updater:job:create', 'account-updater:real-time:invoke'] as const)
    await t.rejects(server.ask('app create', { name: 'p', type: 'public', permissions: [permission] }), {
      code: 'validation',
    })
})
