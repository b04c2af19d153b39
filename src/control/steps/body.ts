import type { HttpRequest } from '../../http/exchange.js'

/**
 * Lets several steps read the body of `request`, although a connection can be read only once. The returned function
 * returns undefined if no step has read the body.
 */
export function keepBody(request: HttpRequest): () => Promise<Uint8Array | undefined> | undefined {
  let body: Promise<Uint8Array | undefined> | undefined
  const read = request.readBody.bind(request)
  request.readBody = (limitBytes) => (body ??= read(limitBytes))
  return () => body
}

/** Returns an empty text if the body cannot be read. The operation reports this error later. */
export async function textOf(body: Promise<Uint8Array | undefined> | undefined): Promise<string> {
  return Buffer.from((await body?.catch(() => undefined)) ?? []).toString('utf8')
}
