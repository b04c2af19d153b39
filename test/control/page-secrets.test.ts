/**
 * Tests that the dashboard shows no plaintext. The test puts marks into every place where a value is stored,
 * received, printed or refused. Then it opens every screen and form in Chromium, and searches the page and the
 * answers to the page for the marks.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import type { Seed } from '../../src/index.js'
import { needsChromium } from '../http/chromium.js'
import { open, show, signIn } from './page-browser.js'

const MARK = 'SECRET-MARK'
const CARD = '4539578763621577'
const payments = JSON.parse(
  readFileSync(new URL('../../../fixtures/seeds/payments.json', import.meta.url), 'utf8'),
)
const token = (id: string, more: object) => ({ id, type: 'token', containers: ['/pci/high/'], ...more })
const seed: Seed = {
  ...payments,
  tokens: [
    ...payments.tokens,
    token('unmasked', { data: { text: `${MARK}-unmasked` } }),
    token('bare', { data: `${MARK}-bare`, mask: '{{ data }}' }),
    token('object', { data: { text: `${MARK}-object` }, mask: { text: '{{ data.text }}' } }),
    { id: 'number', type: 'card', data: { number: CARD }, mask: 'card {{ data.number }}' },
    token('indexed', { data: `${MARK}-indexed`, mask: 'indexed', search_indexes: ['{{ data }}'] }),
  ],
}
const NOISY = `module.exports = async ({ args, configuration }) => {
  console.log(args.text, configuration.KEY)
  console.error({ nested: [args.text] })
  throw Object.assign(new Error('no ' + args.text), { status: 400, errors: { [args.text]: [configuration.KEY] } })
}`

/** Answers every request with a mark and with the content of the request. */
async function startReceiver(t: Test) {
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    response.setHeader('content-type', 'application/json')
    response.setHeader('x-answer', `${MARK}-header`)
    response.end(
      JSON.stringify({
        id: 'echo',
        type: 'token',
        said: `${MARK}-answer`,
        got: String(Buffer.concat(parts)),
      }),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test(
  'no stored, received, printed or refused value reaches the page',
  { ...needsChromium, timeout: 600_000 },
  async (t) => {
    const receiver = await startReceiver(t)
    const { server, page, told, call } = await open(t, seed, { allowNet: [receiver] })
    const key = 'proxy-user'
    const grants = ['token:read', 'token:create', 'token:use', 'proxy:invoke', 'reactor:invoke']
    const { key: apiKey } = await server.ask('app create', {
      name: key,
      type: 'private',
      permissions: grants,
    })
    const proxy = await server.ask('proxy create', {
      name: 'echo',
      destination_url: `http://${receiver}/v1`,
      configuration: { KEY: `${MARK}-configuration` },
      request_transforms: [
        { type: 'append_header', options: { value: `Bearer ${MARK}-transform`, location: 'x-key' } },
        {
          type: 'tokenize',
          options: { identifier: 'kept', token: { type: 'token', data: `${MARK}-tokenized` } },
        },
      ],
    })
    await server.ask('webhook create', {
      name: 'hook',
      url: `http://${receiver}/hook?key=${MARK}-query`,
      events: ['token.created', 'proxy.invoked', 'reactor.failed'],
    })
    const configuration = { KEY: `${MARK}-setting` }
    const { id: reactor } = await server.ask('reactor create', { name: 'noisy', code: NOISY, configuration })
    const send = (path: string, body: unknown, headers = {}) =>
      fetch(`${server.url}${path}`, {
        method: 'POST',
        headers: { 'svc-api-key': apiKey!, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })

    await send('/tokens', { type: 'card', data: { number: `${MARK}-refused` } })
    await send('/tokens', { type: 'token', data: `${MARK}-created`, containers: [`${MARK}-container`] })
    await send('/tokens', { type: 'token', data: `${MARK}-created`, [`${MARK}-name`]: 1 })
    await send(`/tokens?${MARK}-parameter=${MARK}`, { type: 'token', data: `{{ ${MARK} }}` })
    await send(`/reactors/${reactor}/react`, {
      args: { text: '{{ unmasked | json: "$.text" }}', sent: `${MARK}-sent` },
    })
    await send(`/reactors/${reactor}/react-async`, { args: { text: `${MARK}-later` } })
    await send('/proxy', { card: '{{ unmasked }}', sent: `${MARK}-sent` }, { 'svc-proxy-key': proxy.key })
    await send(
      `/proxy/${MARK}-path`,
      { card: '{{ number }}' },
      { 'svc-proxy-url': `http://${receiver}/v2?k=${MARK}` },
    )
    await send('/detokenize', { text: '{{ unmasked }} {{ bare }}' })
    await call('/tokens/number')
    await call(`/tokens/${CARD}`)

    await server.control.faults.set({
      rules: [
        { kind: 'status', status: 500, path: '/never', body: { 'data.number': `${MARK}-fault` } },
        { kind: 'status', status: 500, path: '/never', body: { 'data.number': `${MARK}-other` } },
        { kind: 'status', status: 500, path: '/never', headers: { 'x-name': `${MARK}-header` } },
      ],
    })

    await signIn(server, page)
    const seen: string[] = []
    /** Collects the HTML of the page and the values of its fields. */
    const look = async () => {
      seen.push(await page.locator('html').innerHTML())
      seen.push(
        String(
          await page.evaluate(
            `[...document.querySelectorAll('input, textarea, select')].map(({ value }) => value).join('\\n')`,
          ),
        ),
      )
    }
    const dialog = page.getByRole('dialog')
    const detail = page.locator('.detail')
    const closeDialog = async () => {
      await look()
      await dialog.locator('button[type=reset]').click()
      await dialog.waitFor({ state: 'detached' })
    }
    /** Opens each tab of the detail. */
    const lookAtTabs = async () => {
      for (const tab of await detail.getByRole('tab').all()) {
        await tab.click()
        await look()
      }
      await look()
    }

    const rows = page.locator('tbody [data-link]')
    await page.locator('table[aria-rowcount="12"]').waitFor()
    for (let at = 0; at < (await rows.count()); at++) {
      await rows.nth(at).click()
      await detail.waitFor()
      await lookAtTabs()
      if (await detail.getByRole('button', { name: 'Edit and send' }).isVisible()) {
        await detail.getByRole('button', { name: 'Edit and send' }).click()
        await closeDialog()
      }
    }
    for (const id of ['unmasked', 'bare', 'object', 'number', 'indexed']) {
      await show(page, `tokens/${id}`, 'Tokens')
      await detail.getByText(id, { exact: true }).first().waitFor()
      await lookAtTabs()
      await detail.getByRole('button', { name: 'Edit' }).click()
      await dialog.getByLabel('Replace: data').check()
      await closeDialog()
    }
    await show(page, 'tokens/bare', 'Tokens')
    await detail.getByText('does not hide the secret part').waitFor()
    await page.getByLabel('Find in Tokens').fill('indexed')
    await page.locator('table[aria-rowcount="2"]').waitFor()
    await look()

    await show(page, `reactors/${reactor}`, 'Reactors')
    await detail.locator('pre', { hasText: 'withheld' }).first().waitFor()
    await look()
    await detail.getByRole('button', { name: 'Edit' }).click()
    await closeDialog()
    await detail.getByLabel('Body').fill(JSON.stringify({ args: { text: '{{ number }}' } }))
    await detail.getByLabel('As', { exact: true }).selectOption({ label: `${key} (private)` })
    await detail.getByRole('button', { name: 'Run', exact: true }).click()
    await detail.getByText('Answer, without data').waitFor()
    await look()

    await show(page, 'proxies', 'Proxies')
    await detail.getByText('18 characters').or(detail.getByText('characters)')).first().waitFor()
    await look()
    await detail.getByRole('button', { name: 'Edit' }).click()
    await dialog.getByLabel('Replace: configuration').check()
    await dialog.getByLabel('Replace: request transforms').check()
    await closeDialog()

    await show(page, 'webhooks', 'Webhooks')
    await detail.getByText('The answer of the receiver has').waitFor()
    for (const each of await detail.getByRole('button', { name: /^Show delivery/ }).all()) {
      await each.click()
      await look()
    }
    await detail.getByRole('button', { name: 'Edit' }).click()
    await closeDialog()
    for (const [screen, title] of Object.entries({
      log: 'Log',
      outbox: 'Outbox',
      members: 'Members',
      tenant: 'Tenant',
      applications: 'Applications',
      controls: 'Controls',
    })) {
      await show(page, screen, title)
      await page.locator('.screen').waitFor()
      await look()
    }

    await page.getByRole('button', { name: 'Remove fault 1' }).click()
    await page.getByText('2 on', { exact: true }).waitFor()
    await page.getByRole('button', { name: '503, once' }).click()
    await page.getByText('3 on', { exact: true }).waitFor()
    await look()
    t.match(
      await server.control.faults.list(),
      [
        { body: { 'data.number': `${MARK}-other` } },
        { headers: { 'x-name': `${MARK}-header` } },
        { status: 503 },
      ],
      'a change of the faults keeps the values that the page does not have',
    )

    // The page shows the code of reactors, so the test puts no marks into code.
    const secrets = new RegExp(`${MARK}[\\w-]*|${CARD}|${apiKey}|${proxy.key}`)
    t.equal(secrets.exec(seen.join('\n'))?.[0], undefined, 'no mark is in the page')
    t.equal(secrets.exec(told.join('\n'))?.[0], undefined, 'no mark is in an answer to the page')
    t.ok(seen.length > 60, `${seen.length} states of the page`)
  },
)
