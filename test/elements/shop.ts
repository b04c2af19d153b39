/**
 * The parts of a checkout: a shop whose pages use the unmodified packages, the server of the shop, and a server of
 * Coffer.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'
import { startServer } from '../../src/index.js'
import { ROOT } from '../docs/document.js'
import { type Stub, startStub } from '../http/stub.js'
import { createBackend, type Json } from '../http/threeds-shop.js'

/** A checkout as a team writes it, from the card fields to the bank and to the charge. */
const CHECKOUT = `
import { BasisTheory3ds } from '@basis-theory/web-threeds'
import {
  BasisTheoryProvider,
  CardExpirationDateElement,
  CardNumberElement,
  CardVerificationCodeElement,
  useBasisTheory,
} from '@basis-theory/react-elements'
import { useRef, useState } from 'react'

const ask = async (path, body) => (await fetch(path, { method: 'POST', body: JSON.stringify(body) })).json()

async function pay(apiKey, tokenId) {
  const bank = BasisTheory3ds(apiKey, { disableTelemetry: true })
  const { id: sessionId } = await bank.createSession({ tokenId })
  let answer = await ask('/authenticate', { sessionId })
  if (answer.authentication_status === 'challenge') {
    await bank.startChallenge({
      sessionId,
      acsChallengeUrl: answer.acs_challenge_url,
      acsTransactionId: answer.acs_transaction_id,
      threeDSVersion: answer.threeds_version,
    })
    answer = await ask('/result', { sessionId })
  }
  if (answer.authentication_status !== 'successful') return answer.authentication_status
  return (await ask('/charge', { tokenId })).status
}

export function Checkout({ apiKey }) {
  const { bt, error } = useBasisTheory(apiKey)
  const [number, date, code] = [useRef(null), useRef(null), useRef(null)]
  const [brand, setBrand] = useState('')
  const [result, setResult] = useState('')
  const submit = async (event) => {
    event.preventDefault()
    try {
      const token = await bt.tokens.create({
        type: 'card',
        data: {
          number: number.current,
          expiration_month: date.current.month(),
          expiration_year: date.current.year(),
          cvc: code.current,
        },
      })
      setResult(await pay(apiKey, token.id))
    } catch (error) {
      setResult(error.name + ' ' + JSON.stringify(error.validation ?? error.data ?? error.message))
    }
  }
  if (error) return <p>{error.message}</p>
  return (
    <BasisTheoryProvider bt={bt}>
      <form onSubmit={submit}>
        <CardNumberElement id="number" ref={number} onChange={({ cardBrand }) => setBrand(cardBrand)} />
        <CardExpirationDateElement id="date" ref={date} />
        <CardVerificationCodeElement id="code" ref={code} cardBrand={brand} />
        <button>Pay</button> <output id="brand">{brand}</output> <output id="result">{result}</output>
      </form>
    </BasisTheoryProvider>
  )
}
`

/** The code of a page that offers the packages to the test. */
const KIT = `
import { BasisTheory } from '@basis-theory/basis-theory-js'
import { basistheory } from '@basis-theory/web-elements'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Checkout } from './checkout'
Object.assign(window, {
  kit: {
    BasisTheory,
    basistheory,
    showCheckout: (apiKey) =>
      createRoot(document.querySelector('#a')).render(<StrictMode><Checkout apiKey={apiKey} /></StrictMode>),
  },
})
`

export async function bundleKit(): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: KIT, loader: 'jsx', resolveDir: ROOT },
    bundle: true,
    write: false,
    platform: 'browser',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error',
    plugins: [
      {
        name: 'checkout',
        setup(builder) {
          builder.onResolve({ filter: /^\.\/checkout$/ }, ({ path }) => ({ path, namespace: 'checkout' }))
          builder.onLoad({ filter: /.*/, namespace: 'checkout' }, () => ({
            contents: CHECKOUT,
            loader: 'jsx',
            resolveDir: ROOT,
          }))
        },
      },
    ],
  })
  return outputFiles[0]!.text
}

const PAGE = `<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1>
<div id="a"></div><div id="b"></div><div id="c"></div></main>`

export type Coffer = Awaited<ReturnType<typeof startCoffer>>

/** Starts a payment service, and a Coffer server whose proxies may call this service. */
export async function startCoffer(t: Test) {
  const processor = await startStub()
  const server = await startServer({ prefix: 'bt', allowNet: [`127.0.0.1:${processor.port}`] })
  t.teardown(async () => {
    processor.close()
    await server.stop()
  })
  return { server, processor, keys: server.keys, backend: createBackend(server.url, server.keys) }
}

/**
 * Starts the shop and returns its address. Requests of the checkout page to its backend are answered. For every other
 * path, the shop answers with the page.
 */
export async function startShop(t: Test, { backend, processor }: Coffer, kit: string): Promise<string> {
  const answers: Record<string, (body: Json) => Promise<Json>> = {
    '/authenticate': ({ sessionId }) => backend.authenticate(sessionId),
    '/result': async ({ sessionId }) => (await backend.result(sessionId)).json,
    '/charge': ({ tokenId }) => charge(backend.url, backend.keys.private, tokenId, processor),
  }
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const answer = answers[pathname]
    if (answer !== undefined) {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(await answer(await readJson(request))))
    } else if (pathname === '/kit.js') response.setHeader('content-type', 'text/javascript').end(kit)
    else response.setHeader('content-type', 'text/html').end(`${PAGE}<script src="/kit.js"></script>`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://localhost:${(server.address() as AddressInfo).port}`
}

async function charge(coffer: string, key: string, tokenId: string, processor: Stub): Promise<Json> {
  const headers = { 'BT-API-KEY': key, 'BT-PROXY-URL': processor.url, 'content-type': 'application/json' }
  const body = JSON.stringify({ number: `{{ ${tokenId} | json: '$.number' }}`, amount: 1250 })
  const answer = await fetch(`${coffer}/proxy/charges`, { method: 'POST', headers, body })
  return { status: answer.ok ? 'paid' : await answer.text() }
}

async function readJson(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString('utf8'))
}

export interface Visit {
  tab: Page
  /**
   * The hosts that the page has tried to reach, without localhost and without hosts for which a route of the test
   * answers.
   */
  strangers: string[]
  /** The address of each request of the page. */
  asked: string[]
  /** The lines that the page has written to its console. */
  printed: string[]
}

/**
 * Opens a page for which every host except localhost is out of reach. The function `prepare` runs before the page is
 * loaded.
 */
export async function visit(
  t: Test,
  browser: Browser,
  shop: string,
  prepare: (tab: Page) => Promise<void> = async () => {},
): Promise<Visit> {
  const context = await browser.newContext()
  t.teardown(() => context.close())
  const strangers: string[] = []
  const asked: string[] = []
  const printed: string[] = []
  await context.route('**/*', (route) => {
    const { hostname, host } = new URL(route.request().url())
    if (['localhost', '127.0.0.1'].includes(hostname)) return route.continue()
    strangers.push(host)
    return route.abort()
  })
  const tab = await context.newPage()
  tab.on('request', (request) => asked.push(request.url()))
  tab.on('console', (message) => printed.push(message.text()))
  tab.on('pageerror', (error) => printed.push(String(error)))
  await prepare(tab)
  await tab.goto(shop)
  return { tab, strangers, asked, printed }
}
