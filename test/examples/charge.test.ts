/** The example `fixtures/examples/charge` in a browser, with the built program. */
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { launchChromium, needsChromium } from '../http/chromium.js'
import { createWorkplace, request, startProcess } from '../http/process.js'

const NUMBER = '4242424242424242'
const example = (name: string) =>
  import(new URL(`../../../fixtures/examples/charge/${name}.mjs`, import.meta.url).href)

async function listen(t: Test, server: Server, heard: string[] = []): Promise<string> {
  server.on('request', (request) => request.on('data', (chunk: Buffer) => heard.push(chunk.toString())))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://localhost:${(server.address() as AddressInfo).port}`
}

t.test(
  'a page stores a card through a session, and the shop charges the card through a proxy',
  needsChromium,
  async (t) => {
    const { createProvider } = await example('provider')
    const providerUrl = await listen(t, createProvider())
    const place = createWorkplace()
    const words = ['--ephemeral', '--allow-net', `${new URL(providerUrl).host},127.0.0.1`]
    const server = await startProcess(place, words)
    const { url: vaultUrl, applications } = server.announcement
    const { public: page, private: backend, management } = applications
    const { createShop } = await example('shop')
    const heard: string[] = []
    const keys = { publicKey: page?.key, privateKey: backend?.key }
    const shopUrl = await listen(t, createShop({ vaultUrl, providerUrl, ...keys }), heard)
    const browser = await launchChromium()
    t.teardown(async () => {
      await browser.close()
      server.child.kill('SIGTERM')
      await server.ended
      place.remove()
    })
    const tab = await browser.newPage()
    await tab.goto(shopUrl)
    await tab.getByLabel('Card number').fill(NUMBER)
    await tab.getByRole('button').click()
    await tab.waitForFunction('document.querySelector("output").textContent !== ""')
    t.equal(await tab.textContent('output'), 'ch_1: paid')

    const charges = (await (await fetch(providerUrl)).json()) as object[]
    t.match(
      charges,
      [{ id: 'ch_1', amount: 1250, card: { number: NUMBER } }],
      'the provider received the card number',
    )
    t.ok(heard.length > 1)
    t.notOk(heard.join().includes(NUMBER), 'the shop never received the card number')
    const { json } = await request(server.announcement, management?.key, 'GET /logs?entity_type=card')
    const { data } = json
    t.match(data, [
      { operation: 'use', actor_id: backend?.id },
      { operation: 'create', actor_id: page?.id },
    ])
    t.match(server.printed.stderr, /"route":"\/proxy","status":201/)
    t.notOk(server.printed.stderr.includes(NUMBER))
  },
)
