/** The fault `provision`: building the code of a reactor or proxy takes time, and the build can fail. */
import t from 'tap'
import { openTestVault } from '../../src/index.js'

type Vault = Awaited<ReturnType<typeof openTestVault>>

async function send(
  vault: Vault,
  method: string,
  path: string,
  body?: unknown,
  key = vault.keys.management!,
) {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  const headers = { 'svc-api-key': key, 'content-type': type }
  const answer = await vault.fetch(path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) })
  const text = await answer.text()
  const parsed = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
  return {
    status: answer.status,
    body: parsed as { id: string; state: string; requested?: object } & typeof parsed,
  }
}

const react = (vault: Vault, id: string) =>
  send(vault, 'POST', `/reactors/${id}/react`, {}, vault.keys.private!)
const codeOf = (value: number) => `module.exports = async () => ({ raw: ${value} })`

async function openFrozen() {
  const vault = await openTestVault()
  await vault.control.clock.set({ mode: 'frozen', at: '2030-01-01T00:00:00.000Z' })
  return vault
}

t.test(
  'with the fault provision, a new reactor has the state creating until the time of the rule has passed',
  async (t) => {
    await using vault = await openFrozen()
    const rule = { operation: 'reactor create', kind: 'provision', delay_ms: 3000, times: 1 } as const
    await vault.control.faults.set({ rules: [rule] })
    const created = await send(vault, 'POST', '/reactors', { name: 'r', code: codeOf(1) })
    t.match(created, {
      status: 201,
      body: { state: 'creating', requested: { reactor: { code: codeOf(1) } } },
    })
    t.notOk('error_code' in created.body.requested!)
    const { id } = created.body
    t.match(await react(vault, id), { status: 422, body: { detail: 'The reactor is not ready: creating.' } })
    await vault.control.clock.advance({ by: '2999ms' })
    t.match(await send(vault, 'GET', `/reactors/${id}`), { body: { state: 'creating' } })
    await vault.control.clock.advance({ by: '1ms' })
    const active = await send(vault, 'GET', `/reactors/${id}`)
    t.match(active, { body: { state: 'active', code: codeOf(1) } })
    t.notOk('requested' in active.body)
    t.match(await react(vault, id), { status: 200, body: { raw: 1 } })
    t.match(await send(vault, 'POST', '/reactors', { name: 'next', code: codeOf(1) }), {
      body: { state: 'active' },
    })
  },
)

t.test(
  'if the fault provision has an error, a reactor becomes failed after the time of the rule, and shows the error',
  async (t) => {
    await using vault = await openFrozen()
    const details = { vulnerabilities: [{ name: 'axios', version: '1.0.0', severity: 'HIGH', id: 'X-1' }] }
    const error = {
      error_code: 'vulnerabilities_detected',
      error_message: 'Please update the dependencies listed to resolve security vulnerabilities.',
      error_details: details,
    }
    await vault.control.faults.set({
      rules: [{ operation: 'reactor create', kind: 'provision', delay_ms: 1000, ...error }],
    })
    const { body } = await send(vault, 'POST', '/reactors', { name: 'r', code: codeOf(1) })
    t.equal(body.state, 'creating')
    t.notMatch(JSON.stringify(body), 'vulnerabilities')
    await vault.control.clock.advance({ by: '1000ms' })
    t.match(await send(vault, 'GET', `/reactors/${body.id}`), { body: { state: 'failed', requested: error } })
    t.match(await react(vault, body.id), { status: 422 })
    await vault.control.faults.set({ rules: [] })
    t.equal((await send(vault, 'PATCH', `/reactors/${body.id}`, { code: codeOf(2) })).status, 204)
    t.match(await react(vault, body.id), { status: 200, body: { raw: 2 } })
  },
)

t.test(
  'while a change of code is being built, the earlier version runs, and the last of several changes takes effect',
  async (t) => {
    await using vault = await openFrozen()
    const { body } = await send(vault, 'POST', '/reactors', {
      name: 'r',
      code: codeOf(1),
      configuration: { a: 'A' },
    })
    const path = `/reactors/${body.id}`
    await vault.control.faults.set({
      rules: [{ operation: 'reactor patch', kind: 'provision', delay_ms: 1000 }],
    })
    await send(vault, 'PATCH', path, { code: codeOf(2) })
    t.match(await send(vault, 'GET', path), {
      body: {
        state: 'updating',
        code: codeOf(1),
        requested: { reactor: { code: codeOf(2), configuration: { a: 'A' } } },
      },
    })
    t.match(await react(vault, body.id), { body: { raw: 1 } })
    await vault.control.clock.advance({ by: '500ms' })
    await send(vault, 'PATCH', path, { code: codeOf(3) })
    await vault.control.clock.advance({ by: '999ms' })
    t.match(await react(vault, body.id), { body: { raw: 1 } }, 'the last change has its own time')
    await vault.control.clock.advance({ by: '1ms' })
    t.match(await send(vault, 'GET', path), { body: { state: 'active', code: codeOf(3) } })
    t.match(await react(vault, body.id), { body: { raw: 3 } })
    const { data } = await vault.ask('reactor list')
    t.match(data, [{ state: 'active', code: codeOf(3) }])
    await send(vault, 'PATCH', path, { code: codeOf(4) })
    await vault.control.clock.advance({ by: '1000ms' })
    t.match(((await vault.ask('seed export')) as { reactors: unknown }).reactors, [{ code: codeOf(4) }])
  },
)

t.test(
  'with the fault provision, a proxy with code has the state creating until the time of the rule has passed',
  async (t) => {
    await using vault = await openFrozen()
    await vault.control.faults.set({ rules: [{ path: '/proxies*', kind: 'provision', delay_ms: 1000 }] })
    const proxy = {
      name: 'p',
      destination_url: 'https://a.example',
      request_transforms: [{ type: 'code', code: codeOf(1) }],
    }
    const { body } = await send(vault, 'POST', '/proxies', proxy)
    t.match(body, {
      state: 'creating',
      requested: { proxy: { request_transforms: proxy.request_transforms } },
    })
    await vault.control.clock.advance({ by: '1000ms' })
    t.match(await send(vault, 'GET', `/proxies/${body.id}`), { body: { state: 'active' } })
  },
)

t.test('in no-reveal mode, the configuration that was requested for a reactor is hidden', async (t) => {
  await using vault = await openFrozen()
  await vault.control.faults.set({ rules: [{ path: '/reactors', kind: 'provision', delay_ms: 1000 }] })
  await send(vault, 'POST', '/reactors', { name: 'r', code: codeOf(1), configuration: { a: 's3cret' } })
  await vault.ask('config set', { name: 'no_reveal', value: 'true' } as never)
  const shown = JSON.stringify(await vault.ask('reactor list'))
  t.match(shown, '"state":"creating"')
  t.notMatch(shown, 's3cret')
})

t.test('a provision rule without an effect, and a rule with a wrong error, are refused', async (t) => {
  await using vault = await openFrozen()
  for (const rule of [
    { kind: 'provision' },
    { kind: 'status', status: 500, error_code: 'x' },
    { kind: 'provision', error_code: 'x', error_details: 7 },
    { kind: 'provision', error_code: 'x', error_details: { a: 'x'.repeat(20_000) } },
    { kind: 'provision', error_code: '' },
  ])
    await t.rejects(vault.control.faults.set({ rules: [rule as never] }), { code: 'validation' })
})
