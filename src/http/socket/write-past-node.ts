import type { IncomingMessage, ServerResponse } from 'node:http'
import { formatHead, type HttpResponse } from '../exchange.js'

/**
 * Writes a small response with one write to the socket, because Node's `ServerResponse` takes half of the time of a
 * `GET`. Handles only complete texts with plain headers on a connection that stays open. For other responses, writes
 * nothing and returns false: the caller then uses `sendResponse`.
 */
export function writePastNode(
  message: IncomingMessage,
  response: ServerResponse,
  { status, headers, body, bytes, stream, cutAt }: HttpResponse,
  { length, keepAliveLines, done }: { length: number; keepAliveLines: () => string; done: () => void },
): boolean {
  const { socket, httpVersion, method } = message
  const isOther =
    (bytes ?? stream ?? cutAt ?? headers.connection ?? headers['content-security-policy']) !== undefined
  if (isOther || !response.shouldKeepAlive || httpVersion !== '1.1' || response.socket !== socket)
    return false
  let text = formatHead(status, headers)
  if (text === undefined) return false
  if (status !== 204) text += `content-length: ${length}\r\n`
  text += `${keepAliveLines()}\r\n`
  const encoding = length === body.length ? 'latin1' : 'utf8'
  socket.write(method === 'HEAD' ? text : text + body, encoding, () => {
    // At the event `finish`, Node detaches the response from the socket and begins the next request of the connection.
    response.emit('finish')
    done()
  })
  return true
}
