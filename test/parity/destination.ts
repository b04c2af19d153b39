/** The server that recorded calls through proxies reach, as `$stub`. It answers by the path, and always the same. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What every door allows; no other case calls a server. */
export const ALLOWED = '127.0.0.1'

/** `/echo…` tells what was sent, `/status/402` has that status, `/redirect` leads elsewhere, `/card` shows a number. */
export async function startDestination(): Promise<{ url: string; close(): void }> {
  const server = createServer(async (request, response) => {
    response.sendDate = false
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const { method, url = '', headers } = request
    const body = Buffer.concat(chunks).toString()
    response.setHeader('content-type', 'application/json')
    const status = Number(/^\/status\/(\d+)/.exec(url)?.[1] ?? 200)
    if (url === '/redirect') response.writeHead(302, { location: '/echo' }).end('{"moved":true}')
    else if (url === '/card') response.end('{"number":"4242424242424242"}')
    else if (status !== 200) response.writeHead(status).end(JSON.stringify({ status }))
    else {
      const told = { type: headers['content-type'] ?? null, authorization: headers.authorization ?? null }
      response.end(JSON.stringify({ method, url, ...told, body }))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, ALLOWED, resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${ALLOWED}:${port}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
