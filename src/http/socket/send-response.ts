import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { HttpResponse } from '../exchange.js'
import type { RequestBody } from './request-body.js'

/** A client that stops reading a response of more than this size is disconnected. */
export const LARGE_BYTES = 64 * 1024

export interface Sending {
  /** 0 for a stream. */
  length: number
  body: RequestBody
  stallMs: number
}

export async function sendResponse(
  response: ServerResponse,
  { status, headers, body: text, bytes, stream, cutAt }: HttpResponse,
  { length, body, stallMs }: Sending,
): Promise<void> {
  const { isComplete } = body
  if (stream !== undefined) {
    // If the stream fails, closes the connection, so that the client sees that the response is incomplete.
    response.writeHead(status, headers)
    await pipeline(stream, response, { end: false }).catch(() => response.destroy())
  } else {
    // Node would copy a large text together with the headers, and would copy the rest again after each partial write.
    // Node does not copy a buffer.
    const content = bytes ?? (length > LARGE_BYTES ? Buffer.from(text) : text)
    if (status !== 204) headers['content-length'] = String(length)
    response.writeHead(status, headers)
    if (typeof cutAt === 'number')
      return void response.write(Buffer.from(content).subarray(0, cutAt), () => response.socket?.destroy())
    if (length > LARGE_BYTES) response.setTimeout(stallMs)
    if (isComplete) return void response.end(content)
    response.write(content)
  }
  // If bytes of the request were still unread, closing the connection would reset it, and the client could lose the
  // response.
  if (!isComplete && body.isArriving) body.drain(() => void response.end())
  else response.end()
}
