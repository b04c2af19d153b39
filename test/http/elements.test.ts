/** The script of the card fields: its paths and its contents. `test/elements` runs this script in a browser. */
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { createHandler } from '../support/service.js'
import { openTestVault } from '../support/test-vault.js'

async function open(t: Test) {
  const vault = await openTestVault()
  t.teardown(() => vault.app.close())
  const handle = createHandler(vault.app, { prefix: 'bt' })
  return (line: string, headers: Record<string, string> = {}) => {
    const [method = '', path = ''] = line.split(' ')
    return handle(new Request(`http://localhost:4010${path}`, { method, headers }))
  }
}

/** Runs the script of the card fields with a `fetch` that records its arguments and sends nothing. */
async function requestOf(script: string) {
  const calls: [string, { headers: Headers }][] = []
  const fetch = async (...call: [string, { headers: Headers }]) => {
    calls.push(call)
    return new Response('{}')
  }
  const window: {
    BasisTheoryElements?: { init(key: string): Promise<{ sessions: { create(): Promise<unknown> } }> }
  } = {}
  runInNewContext(script, { window, fetch, Headers })
  const bt = await window.BasisTheoryElements!.init('my-key')
  await bt.sessions.create()
  const [url, { headers }] = calls[0]!
  return [url, headers.get('bt-api-key')]
}

t.test(
  'the script of the card fields sends requests to its own server, with the header prefix of the server',
  async (t) => {
    const ask = await open(t)
    for (const path of [
      '/elements/client/index.js',
      '/web-elements/2.17.0/client/index.js',
      '/web-elements/1.5.0/client/index.js',
      '/web-elements/latest/index.js',
    ]) {
      const answer = await ask(`GET ${path}`)
      t.match([answer.status, answer.headers.get('content-type')], [200, /^text\/javascript/], path)
      t.equal(answer.headers.get('access-control-allow-origin'), '*')
      t.equal(answer.headers.get('cross-origin-resource-policy'), 'cross-origin')
      t.strictSame(await requestOf(await answer.text()), ['http://localhost:4010/sessions', 'my-key'], path)
    }
    const routed = await (await ask('GET /elements/client/index.js?routed=true')).text()
    t.strictSame(await requestOf(routed), ['https://js.basistheory.com/api/sessions', 'my-key'])
  },
)

t.test('the script of the card fields is not served at other paths or for other methods', async (t) => {
  const ask = await open(t)
  for (const path of [
    '/elements/index.js',
    '/web-elements/2.17.0/hosted-elements/index.html',
    '/web-elements//client/index.js',
    '/web-elements/..%2f/client/index.js',
    '/web-elements/1/2/client/index.js',
  ])
    t.equal((await ask(`GET ${path}`)).status, 404, path)
  const refused = await ask('POST /elements/client/index.js')
  t.match([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD'])
  const preflight = { 'access-control-request-method': 'GET', origin: 'https://shop.test' }
  t.equal((await ask('OPTIONS /elements/client/index.js', preflight)).status, 204)
  t.equal((await ask('HEAD /elements/client/index.js')).status, 200)
})
