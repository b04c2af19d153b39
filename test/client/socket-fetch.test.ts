import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createSocketFetch, readServerUrl } from '../../src/client/socket-fetch.js'
import { CERTIFICATE, PRIVATE_KEY } from '../http/certificate.js'

t.test(
  'a server address begins with https, or with http for this machine, and has only a host, a port and a path',
  async (t) => {
    for (const [text, url] of [
      ['https://vault.example/base/', 'https://vault.example/base'],
      ['http://localhost:4010', 'http://localhost:4010'],
      ['http://127.1:80', 'http://127.0.0.1'],
      ['http://[::1]:1/', 'http://[::1]:1'],
      ['HTTP://LOCALHOST', 'http://localhost'],
    ] as const)
      t.equal(readServerUrl(text), url)
    const names = 'http://vault.example http://localhost.example http://127.0.0.1.example http://10.0.0.1'
    const addresses = 'http://[::ffff:10.0.0.1] http://0.0.0.0'
    for (const text of `${names} ${addresses}`.split(' ')) {
      t.throws(() => readServerUrl(text), { code: 'usage', message: /--insecure/ }, text)
      t.equal(readServerUrl(text, { insecure: true }), text.replace('10.0.0.1]', 'a00:1]'))
    }
    for (const text of ['', 'vault', 'ftp://localhost', 'file:///etc/passwd', 'https://'])
      t.throws(() => readServerUrl(text, { insecure: true }), { code: 'usage' }, text)
    for (const text of ['https://key@host', 'https://a:b@host', 'https://host?key=1', 'https://host#1'])
      t.throws(() => readServerUrl(text), { message: /cannot contain a user, a query or a fragment/ }, text)
  },
)

async function serve(t: Test, isSealed: boolean) {
  const seen: { url: string | undefined; body: string }[] = []
  const answer: RequestListener = async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    seen.push({ url: request.url, body })
    response.setHeader('retry-after', '3').end('done')
  }
  const tls = { cert: CERTIFICATE, key: PRIVATE_KEY }
  const server = isSealed ? createTlsServer(tls, answer) : createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return { seen, url: `${isSealed ? 'https' : 'http'}://localhost:${port}/a/../b%2e?c=d` }
}

async function send(t: Test, url: string, options: Parameters<typeof createSocketFetch>[0] = {}) {
  const { fetch, close } = createSocketFetch(options)
  t.teardown(close)
  const init = { method: 'POST', headers: {}, body: 'é', signal: AbortSignal.timeout(5000) }
  const { status, headers, body } = await fetch(url, init)
  let text = ''
  for await (const chunk of body!) text += Buffer.from(chunk).toString()
  return { status, retryAfter: headers.get('retry-after'), missing: headers.get('x'), text }
}

const DONE = { status: 200, retryAfter: '3', missing: null, text: 'done' }

t.test('a request is sent and answered over a socket', async (t) => {
  const { url, seen } = await serve(t, false)
  t.same(await send(t, url), DONE)
  t.match(seen, [{ body: 'é' }])
})

t.test('a certificate is accepted only from a known authority', async (t) => {
  const { url, seen } = await serve(t, true)
  const { NODE_TLS_REJECT_UNAUTHORIZED } = process.env
  t.teardown(() => {
    if (NODE_TLS_REJECT_UNAUTHORIZED === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
  })
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  await t.rejects(send(t, url), { code: 'unavailable', message: /--ca FILE/ })
  await t.rejects(
    send(t, url, { insecure: true }),
    { message: /--ca FILE/ },
    'the error does not suggest --insecure, and --insecure does not help',
  )
  t.same(seen, [])
  t.same(await send(t, url, { ca: CERTIFICATE }), DONE)
  const other = url.replace('localhost', '127.0.0.1')
  await t.rejects(send(t, other, { ca: CERTIFICATE }), { message: /ALTNAME_INVALID/ })
  for (const ca of ['', 'text', PRIVATE_KEY]) await t.rejects(send(t, url, { ca }), { code: 'usage' })
})

t.test('if a server cannot be reached, the request fails with the code unavailable', async (t) => {
  const { url } = await serve(t, false)
  const free = new URL(url)
  free.port = '1'
  const message = /localhost:1 cannot be reached \(ECONNREFUSED\)/
  await t.rejects(send(t, free.href), { code: 'unavailable', message })
  await t.rejects(send(t, url.replace('http:', 'https:')), { code: 'unavailable' })
})
