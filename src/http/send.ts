/** Sends an answer: at once, as fast as the client reads it, or cut short where a fault of the control plane says so. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Connection } from './connection.js'
import type { Answer } from './exchange.js'
import type { Share } from './load.js'
import { CHUNK_BYTES, pour, pourStream } from './pour.js'
import type { RequestBody } from './request-body.js'

export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  connection: Connection
}

/** Resolves when the answer is with the socket, or the client has left. */
export async function send(
  { status, headers, body: text, bytes: given, more = [], stream, cutAt }: Answer,
  { request, response, connection }: Exchange,
  { share, body, isStopping }: { share: Share; body: RequestBody; isStopping: boolean },
): Promise<void> {
  const isComplete = request.complete
  if (cutAt === 'start') return void request.socket.destroy()
  if (stream !== undefined) {
    share.settle(0)
    if (!isComplete || isStopping) headers.connection = 'close'
    response.writeHead(status, headers)
    return pourStream(response, stream)
  }
  const first = given ?? text
  const bytes = more.reduce((sum, piece) => sum + Buffer.byteLength(piece), Buffer.byteLength(first))
  share.settle(bytes)
  if (status !== 204) headers['content-length'] = String(bytes)
  if (!isComplete || (isStopping && connection.isLast)) headers.connection = 'close'
  response.writeHead(status, headers)
  if (cutAt !== undefined) {
    response.write(Buffer.from(first).subarray(0, cutAt), () => request.socket.destroy())
    return
  }
  const isWhole = isComplete || body.isHopeless()
  if (bytes > CHUNK_BYTES && request.method !== 'HEAD') await pour(response, [first, ...more.splice(0)])
  else if (isWhole) return void response.end(first)
  else response.write(first)
  // Closing with unread bytes would reset the connection, and the client could lose the answer.
  if (isWhole) response.end()
  else body.drain(() => response.end())
}
