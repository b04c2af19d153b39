/**
 * On 50 connections, measures `POST /proxy` with one expression, and compares the time with that of the same
 * request sent directly to the destination. One destination answers at once. Another destination takes 20 ms, as a
 * payment provider would. The arguments are rounds and seconds of one measurement.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { createWorkplace, startProcess } from '../test/http/process.js'
import { median } from './figures.js'

const CONNECTIONS = 50
const GOAL = 0.5
const DELAYS_MS = [0, 20]
const NUMBER = '4242424242424242'
const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
const [first = '', seconds = '3'] = process.argv.slice(2)

if (first === 'stub') await serveStub()
else await measure(Number(first || '3'), Number(seconds) * 1000)

/** Starts a destination that answers a request for `/<ms>` after this number of ms. */
async function serveStub(): Promise<void> {
  const server = createServer((incoming, response) => {
    incoming.resume().once('end', () => {
      const answer = () => response.setHeader('content-type', 'application/json').end('{"status":"paid"}')
      const ms = Number(incoming.url?.slice(1))
      if (ms === 0) answer()
      else setTimeout(answer, ms)
    })
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port))
  process.once('disconnect', () => process.exit())
}

async function measure(rounds: number, ms: number): Promise<void> {
  const stub = fork(fileURLToPath(import.meta.url), ['stub'])
  const [port] = (await once(stub, 'message')) as [number]
  const place = createWorkplace()
  const server = await startProcess(place, [
    '--ephemeral',
    '--log',
    'none',
    '--allow-net',
    `127.0.0.1:${port}`,
  ])
  const { url, applications } = server.announcement
  const key = applications.private?.key ?? ''
  const coffer = Number(new URL(url).port)
  const json = { 'content-type': 'application/json' }
  await post(
    coffer,
    '/tokens',
    { ...json, 'svc-api-key': key },
    { id: 'card-1', type: 'card_number', data: NUMBER },
  )
  const proxied = { ...json, 'svc-api-key': key, 'svc-proxy-url': `http://127.0.0.1:${port}` }
  for (const delay of DELAYS_MS) {
    const direct = () => post(port, `/${delay}`, json, { amount: 1250, card: NUMBER })
    const through = () => post(coffer, `/proxy/${delay}`, proxied, { amount: 1250, card: '{{ card-1 }}' })
    await runFor(ms, through)
    const rates: [number, number][] = []
    for (let round = 0; round < rounds; round++)
      rates.push([await runFor(ms, direct), await runFor(ms, through)])
    const [plain, ours] = [0, 1].map((at) => median(rates.map((pair) => pair[at]!)))
    const share = median(rates.map(([one, other]) => other / one))
    const verdict = share >= GOAL ? 'met' : 'missed'
    console.log(
      `stub of ${delay} ms: direct ${Math.round(plain!)}/s, POST /proxy ${Math.round(ours!)}/s, ratio ${share.toFixed(2)} (goal ${GOAL}: ${verdict})`,
    )
  }
  server.child.kill('SIGTERM')
  stub.disconnect()
  agent.destroy()
  await server.ended
  place.remove()
}

function post(port: number, path: string, headers: Record<string, string>, value: object): Promise<void> {
  const body = JSON.stringify(value)
  const length = { 'content-length': String(Buffer.byteLength(body)) }
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      path,
      method: 'POST',
      agent,
      headers: { ...headers, ...length },
    }
    const sent = request(options, (response) => {
      const { statusCode = 0 } = response
      response
        .resume()
        .once('end', () => (statusCode < 300 ? resolve() : reject(new Error(`status ${statusCode}`))))
    })
    sent.once('error', reject)
    sent.end(body)
  })
}

/** Repeats `call` for `ms` milliseconds and returns the number of requests per second. */
async function runFor(ms: number, call: () => Promise<void>): Promise<number> {
  const started = performance.now()
  let count = 0
  const work = async () => {
    for (; performance.now() - started < ms; count++) await call()
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, work))
  return (count * 1000) / (performance.now() - started)
}
