/** The server as a function of the Fetch API, without a socket. */
import { collectBytes } from '../domain/proxy/collect-bytes.js'
import { CofferError, validationError } from '../errors.js'
import type { Answerer } from './answerer.js'
import { bodyTooLarge } from './input.js'

export type Handler = (request: Request) => Promise<Response>

export function toHandler(answerer: Answerer): Handler {
  return async (request) => {
    const { pathname, search, origin } = new URL(request.url)
    const answer = await answerer({
      method: request.method,
      target: pathname + search,
      headers: Object.fromEntries(request.headers),
      origin,
      readBody: (limitBytes) => collectBytes(request.body ?? [], limitBytes),
      streamBody: (limitBytes) => limitBody(request.body ?? [], limitBytes),
      onLeave: (listener) => {
        if (request.signal.aborted) listener()
        else request.signal.addEventListener('abort', listener)
      },
    })
    const { status, headers, body, bytes, stream, cutAt } = answer
    const content = bytes ?? body
    if (cutAt !== undefined) return new Response(cutContent(content, cutAt), { status, headers })
    if (stream !== undefined) return new Response(ReadableStream.from(stream), { status, headers })
    const isBare = content.length === 0 || request.method === 'HEAD'
    return new Response(isBare ? null : content, { status, headers })
  }
}

async function* limitBody(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  limitBytes: number,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  try {
    for await (const piece of pieces) {
      bytes += piece.length
      if (bytes > limitBytes) throw bodyTooLarge(limitBytes)
      yield piece
    }
  } catch (error) {
    if (error instanceof CofferError) throw error
    throw validationError('The body of the request ended with an error.', { cause: error })
  }
}

function cutContent(content: string | Uint8Array, at: 'start' | number): ReadableStream {
  const ended = () => new TypeError('fetch failed', { cause: new Error('The connection was cut.') })
  if (at === 'start') throw ended()
  return new ReadableStream({
    start: (controller) => controller.enqueue(Buffer.from(content).subarray(0, at)),
    pull: (controller) => controller.error(ended()),
  })
}
