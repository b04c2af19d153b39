/** A server that receives and keeps webhook events, and answers as the test says. */
import { constants, verify } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Received {
  headers: IncomingHttpHeaders
  url: string
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read members of any event.
  body: any
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>

/** Answers a request. The function may also send no response. */
export type Answer = (response: ServerResponse, received: Received) => unknown

export async function startReceiver(answer: Answer = (response) => response.end()) {
  const received: Received[] = []
  const state = { answer }
  let tell = () => {}
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString()
    const one = { headers: request.headers, url: request.url!, text, body: JSON.parse(text) }
    received.push(one)
    tell()
    state.answer(response, one)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    received,
    state,
    port,
    url: `http://127.0.0.1:${port}/events`,
    types: () => received.map(({ body }) => body.event.type as string),
    waitFor: async (count: number) => {
      while (received.length < count)
        await new Promise<void>((resolve) => {
          tell = resolve
        })
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Returns JSON with sorted keys and without white space. */
export function sortedJson(value: unknown): string {
  const sort = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sort)
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
    return Object.fromEntries(entries.map(([name, member]) => [name, sort(member)]))
  }
  return JSON.stringify(sort(value))
}

/**
 * Verifies a signature as documented: the base64 of an RSA-PSS signature with SHA-256 over the JSON with sorted keys.
 */
export function isSigned({ headers, body }: Received, publicKey: string, prefix = 'svc'): boolean {
  const key = { key: publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }
  const signature = Buffer.from(String(headers[`${prefix}-signature`]), 'base64')
  return verify('sha256', Buffer.from(sortedJson(body)), key, signature)
}
