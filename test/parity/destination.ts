/**
 * The server that has the name `$stub` in the cases. The cases call this server through proxies. The answer of the
 * server depends only on the path.
 */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The host that every interface allows. No case calls any other host. */
export const ALLOWED = '127.0.0.1'

/** The response of `/account`. */
const ACCOUNT = {
  number: '4242424242424242',
  cvc: '123',
  expiration_month: 10,
  expiration_year: 2031,
  holders: [{ name: 'Ada' }, { name: 'Grace' }],
  note: 'text',
}

/** Returns the headers that a case may add to its request. */
function pick({ connection, 'keep-alive': keepAlive, ...headers }: IncomingHttpHeaders) {
  const added = Object.entries(headers).filter(([name]) => name.startsWith('x-'))
  return { connection, keepAlive, ...Object.fromEntries(added) }
}

/**
 * Starts the destination. `/echo…` returns the request, `/status/402` returns this status, `/redirect` redirects,
 * `/card` returns a card number, `/account` returns `ACCOUNT`, `/text` returns text that is not JSON, and `/bytes`
 * returns bytes that are not UTF-8.
 */
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
    else if (url === '/account') response.end(JSON.stringify(ACCOUNT))
    else if (url === '/text') response.setHeader('content-type', 'text/plain').end('plain')
    else if (url === '/bytes') response.setHeader('content-type', 'image/png').end(Buffer.from([255, 254]))
    else if (status !== 200) response.writeHead(status).end(JSON.stringify({ status }))
    else {
      const told = {
        type: headers['content-type'] ?? null,
        authorization: headers.authorization ?? null,
        ...pick(headers),
      }
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
