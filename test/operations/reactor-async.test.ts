/** Reactors whose runtime says that their runs are asynchronous. */
import t from 'tap'
import { openTestVault } from '../../src/index.js'

const CODE = 'module.exports = async ({ req }) => ({ res: { body: { is: req.n + 1 }, statusCode: 201 } })'

async function openWith(runtime: object) {
  const vault = await openTestVault()
  const { id } = await vault.ask('reactor create', { name: 'r', code: CODE, runtime: runtime as never })
  const send = async (method: string, path: string, body?: object) => {
    const headers = { 'svc-api-key': vault.keys.private!, 'content-type': 'application/json' }
    const answer = await vault.fetch(`/reactors/${id}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const waitForResult = async (run: unknown) => {
    for (;;) {
      const result = await send('GET', `/results/${run}`)
      if (result.status !== 404) return result
    }
  }
  return { vault, send, waitForResult }
}

t.test('a call of an asynchronous reactor starts a run and returns an id for its result', async (t) => {
  const { vault, send, waitForResult } = await openWith({ image: 'node24', async: true, timeout: 900 })
  await using _ = vault
  for (const path of ['/react', '/react-async']) {
    const started = await send('POST', path, { n: 1 })
    t.match(started, { status: 202, body: { asyncReactorRequestId: /^[\w-]{36}$/ } }, path)
    t.same(Object.keys(started.body), ['asyncReactorRequestId'])
    t.same(await waitForResult(started.body.asyncReactorRequestId), { status: 201, body: { is: 2 } })
  }
})

t.test('the input of an asynchronous reactor is checked before the run is started', async (t) => {
  const { vault, send } = await openWith({ image: 'node24', async: true })
  await using _ = vault
  t.match(await send('POST', '/react', { args: { a: '{{ 6f4e1c52-0a3c-4c66-9f6e-6a2f7a0c1b11 }}' } }), {
    status: 400,
  })
})

for (const runtime of [
  { image: 'node-bt', async: true },
  { image: 'node22', async: false },
  { image: 'node22' },
])
  t.test(`with the runtime ${JSON.stringify(runtime)} a call waits until its run has ended`, async (t) => {
    const { vault, send } = await openWith(runtime)
    await using _ = vault
    t.same(await send('POST', '/react', { n: 1 }), { status: 201, body: { is: 2 } })
  })

t.test('webhooks can subscribe to events about vulnerabilities', async (t) => {
  await using vault = await openTestVault()
  const events = ['reactor', 'proxy'].map((noun) => `${noun}.vulnerabilities_discovered`)
  const types = (await vault.ask('webhook event-types')) as unknown as string[]
  t.ok([...events, 'tenant.vulnerabilities_notified'].every((type) => types.includes(type)))
  await vault.ask('webhook create', { name: 'w', url: 'https://a.example/hook', events } as never)
})
