/** Tests of large responses that together would exceed the memory. Each kind of request uses a separate server. */
import { setTimeout as wait } from 'node:timers/promises'
import { askAtOnce, askUnread, type Heavy, repeat, startHeavy, weigh } from '../../test/http/weight.js'

const MAX_HEALTH_MS = 300
const MAX_MB = 600
const TOKENS = 100

type Work = (heavy: Heavy) => Promise<Record<string, number>>

const unread = async (heavy: Heavy, line: string, connections: number, times = 1) => {
  const sockets = askUnread(heavy.server.announcement, { line, key: heavy.key, connections, times })
  await wait(4_000)
  const open = sockets.filter((socket) => !socket.destroyed).length
  for (const socket of sockets) socket.destroy()
  return { open }
}

const WORKS: Record<string, Work> = {
  '20 pages of 100 tokens of 1 MB': ({ server, key }) =>
    askAtOnce(server.announcement, repeat('GET /tokens?size=100', 20), key),
  '20 such pages, masked': ({ server, maskedKey }) =>
    askAtOnce(server.announcement, repeat('GET /tokens?size=100', 20), maskedKey),
  '20 pages of 16 such tokens': ({ server, key }) =>
    askAtOnce(server.announcement, repeat('GET /tokens?size=16', 20), key),
  '80 pages of 16 such tokens': ({ server, key }) =>
    askAtOnce(server.announcement, repeat('GET /tokens?size=16', 80), key),
  '300 single tokens of 1 MB': ({ server, key, ids }) =>
    askAtOnce(
      server.announcement,
      Array.from({ length: 300 }, (_, at) => `GET /tokens/${ids[at % ids.length]}`),
      key,
    ),
  '200 bodies of 1 MB': ({ server, key }) =>
    askAtOnce(
      server.announcement,
      repeat('POST /tokens', 200),
      key,
      JSON.stringify({ type: 'token', data: 'x'.repeat(1_000_000) }),
    ),
  '80 clients that do not read a page of 16': (heavy) => unread(heavy, 'GET /tokens?size=16', 80),
  '500 clients that do not read a token of 1 MB': (heavy) =>
    unread(heavy, `GET /tokens/${heavy.ids[0]}`, 500),
  '50 clients that send 200 requests and do not read': (heavy) =>
    unread(heavy, 'GET /tokens?size=16', 50, 200),
}

const faults: string[] = []
for (const [name, work] of Object.entries(WORKS)) {
  const heavy = await startHeavy(TOKENS)
  const { statuses, worstHealthMs, worstReadMs, peakMB, ms } = await weigh(heavy, () => work(heavy))
  console.log(
    `  ${name}: ${JSON.stringify(statuses)} in ${Math.round(ms)} ms; /healthz at worst ${Math.round(worstHealthMs)} ms, ` +
      `/permissions ${Math.round(worstReadMs)} ms, memory ${Math.round(peakMB)} MB`,
  )
  if (worstHealthMs > MAX_HEALTH_MS) faults.push(`${name}: /healthz took ${worstHealthMs} ms`)
  if (peakMB > MAX_MB) faults.push(`${name}: the process used ${peakMB} MB`)
  await heavy.stop()
}
for (const fault of faults) console.error(fault)
process.exitCode = faults.length === 0 ? 0 : 1
