import type { HttpRequest } from '../../http/exchange.js'

/**
 * Has the body of `request` read once, however many ask for it. The returned function gives the body, or undefined if
 * nobody has asked for it.
 */
export function keepBody(request: HttpRequest): () => Promise<Uint8Array | undefined> | undefined {
  let body: Promise<Uint8Array | undefined> | undefined
  const read = request.readBody.bind(request)
  request.readBody = (limitBytes) => (body ??= read(limitBytes))
  return () => body
}

/** The text of a body. Empty if the body does not arrive, which the operation then answers as an error. */
export async function textOf(body: Promise<Uint8Array | undefined> | undefined): Promise<string> {
  return Buffer.from((await body?.catch(() => undefined)) ?? []).toString('utf8')
}
