/** Sends one step to a server. The server may be hostile, so its answer has a limit, and redirects are not followed. */
import { collectBytes } from '../../domain/proxy/collect-bytes.js'
import { CofferError } from '../../errors.js'
import type { RoutedOperation } from '../../framework/registry.js'
import { headerNames } from '../../http/headers.js'
import { formatRequest } from '../format-request.js'
import type { Fetch } from '../http-client.js'
import type { Answer } from './cases.js'

const MAX_ANSWER_BYTES = 4 * 1024 * 1024
const MAX_RATE_LIMITED = 5
const MAX_WAIT_SECONDS = 60

export interface ServerOptions {
  url: string
  prefix: string
  fetch: Fetch
  timeoutMs: number
  /** Resolves earlier if the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<unknown>
}

export interface Ask {
  definition: RoutedOperation
  input: Record<string, unknown>
  key: string
  idempotencyKey?: string | undefined
  /** Ends the wait after a 429. A request that was sent is always completed, because it may have created a record. */
  signal: AbortSignal
}

/** @throws CofferError `unavailable` or `too_large` if there is no usable answer */
export async function askServer(
  options: ServerOptions,
  { definition, input, key, idempotencyKey, signal: stop }: Ask,
): Promise<Answer> {
  const names = headerNames(options.prefix)
  const { method, target, body, contentType } = formatRequest(definition, input)
  const headers: Record<string, string> = { [names.apiKey]: key, accept: 'application/json' }
  if (idempotencyKey !== undefined) headers[names.idempotencyKey] = idempotencyKey
  if (contentType !== undefined) headers['content-type'] = contentType
  for (let attempt = 1; ; attempt++) {
    const signal = AbortSignal.timeout(options.timeoutMs)
    const init = { method, headers, signal, ...(body !== undefined && { body }) }
    const answer = await send(options, options.url + target, init)
    if (answer.status !== 429 || attempt === MAX_RATE_LIMITED || stop.aborted)
      return toAnswer(definition, answer, names.replayed)
    const asked = Number(answer.headers.get('retry-after') ?? 1)
    const seconds = asked >= 0 && asked <= MAX_WAIT_SECONDS ? asked : MAX_WAIT_SECONDS
    await options.wait(seconds * 1000, stop)
    if (stop.aborted) return toAnswer(definition, answer, names.replayed)
  }
}

async function send({ fetch, timeoutMs }: ServerOptions, url: string, init: Parameters<Fetch>[1]) {
  try {
    const { status, headers, body } = await fetch(url, init)
    const bytes = await collectBytes(body ?? [], MAX_ANSWER_BYTES)
    if (bytes === undefined)
      throw new CofferError('too_large', `the answer is larger than ${MAX_ANSWER_BYTES / 2 ** 20} MiB`)
    return { status, headers, text: Buffer.from(bytes).toString() }
  } catch (error) {
    if (error instanceof CofferError) throw error
    const why = init.signal.aborted ? `within ${timeoutMs / 1000} s` : 'because the connection ended'
    throw new CofferError('unavailable', `there was no complete answer ${why}`, { cause: error })
  }
}

/**
 * Over HTTP, the path of an error about a query parameter begins with `query.`. The cases contain names without this
 * prefix.
 */
function toAnswer(
  { endpoint }: RoutedOperation,
  { status, headers, text }: Awaited<ReturnType<typeof send>>,
  replayedHeader: string,
): Answer {
  const isReplayed = headers.get(replayedHeader) === 'true'
  const replayed = isReplayed ? { isReplayed } : {}
  if (text === '') return { status, ...replayed }
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return { status, body: 'no JSON', ...replayed }
  }
  const { errors } = (body ?? {}) as { errors?: unknown }
  if (status < 400 || typeof errors !== 'object' || errors === null) return { status, body, ...replayed }
  const named = Object.entries(errors).map(([path, messages]) => {
    const bare = path.replace(/^query\./, '')
    const isQuery = Object.hasOwn(endpoint.query, /^[^.[]*/.exec(bare)![0])
    return [isQuery ? bare : path, messages]
  })
  return { status, body: { ...(body as object), errors: Object.fromEntries(named) }, ...replayed }
}
