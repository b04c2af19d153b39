/**
 * A server to which proxies send calls in tests. The server records each request, and sends the
 * answer that the test has set.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  method: string
  url: string
  headers: IncomingMessage['headers']
  /** The body of the request, decoded as Latin-1. */
  body: string
}

export interface Stub {
  port: number
  url: string
  received: Received[]
  answer: (request: Received, response: ServerResponse) => void
  close(): void
}

export async function startStub(): Promise<Stub> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const { method = '', url = '', headers } = request
    const received = { method, url, headers, body: Buffer.concat(chunks).toString('latin1') }
    stub.received.push(received)
    stub.answer(received, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const stub: Stub = {
    port,
    url: `http://127.0.0.1:${port}`,
    received: [],
    answer: (_, response) => response.setHeader('content-type', 'application/json').end('{"ok":true}'),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
  return stub
}
