/** The server as a function from `Request` to `Response`, for tests and for programs that embed one. */
import { collectBytes } from '../domain/proxy/collect-bytes.js'
import { type Answerer, type AnswererOptions, createAnswerer } from './answerer.js'
import type { HttpRequest } from './exchange.js'

export type Handler = (request: Request) => Promise<Response>

export function createHandler(options: AnswererOptions): Handler {
  return toHandler(createAnswerer(options))
}

/** Wraps `answerer` in the platform's `Request` and `Response`. */
export function toHandler(answerer: Answerer): Handler {
  return async (request) => {
    const { pathname, search } = new URL(request.url)
    const asked: HttpRequest = {
      method: request.method,
      target: pathname + search,
      headers: Object.fromEntries(request.headers),
      readBody: (limitBytes) => collectBytes(request.body ?? [], limitBytes),
      onLeave: (listener) => {
        if (request.signal.aborted) listener()
        else request.signal.addEventListener('abort', listener)
      },
    }
    const { status, headers, body, bytes, more = [], stream, cutAt } = await answerer(asked)
    if (cutAt !== undefined) return cutAnswer(status, headers, bytes ?? body, cutAt)
    if (stream !== undefined) return new Response(ReadableStream.from(stream), { status, headers })
    if (bytes !== undefined) return new Response(bytes, { status, headers })
    const isBare = body === '' || request.method === 'HEAD'
    return new Response(isBare ? null : [body, ...more].join(''), { status, headers })
  }
}

/** As `fetch` sees a connection that ends too early. */
function cutAnswer(
  status: number,
  headers: Record<string, string>,
  body: string | Uint8Array,
  at: 'start' | number,
): Response {
  const ended = () => new TypeError('fetch failed', { cause: new Error('The connection was cut.') })
  if (at === 'start') throw ended()
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from(body).subarray(0, at))
    },
    pull: (controller) => controller.error(ended()),
  })
  return new Response(stream, { status, headers })
}
