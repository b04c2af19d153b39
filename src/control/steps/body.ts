import type { HttpRequest } from '../../http/exchange.js'

/**
 * Lets several steps read the body of `request`, although the connection can be read only once. The returned function
 * gives the body, or undefined if no step has read it.
 */
export function keepBody(request: HttpRequest): () => Promise<Uint8Array | undefined> | undefined {
  let body: Promise<Uint8Array | undefined> | undefined
  const read = request.readBody.bind(request)
  request.readBody = (limitBytes) => (body ??= read(limitBytes))
  return () => body
}

/**
 * The text of a body. The text is empty if the body cannot be read, because the operation answers with the error
 * later.
 */
export async function textOf(body: Promise<Uint8Array | undefined> | undefined): Promise<string> {
  return Buffer.from((await body?.catch(() => undefined)) ?? []).toString('utf8')
}
