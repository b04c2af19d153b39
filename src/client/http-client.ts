/**
 * Performs operations on any server of the interface, for `--url` and for embedding programs: formats the request, sends
 * it through a function like `fetch`, tries again if the server is busy, and reads the answer or the problem.
 */

import { decodeUtf8, parseJson, parseJsonOrNothing } from '../domain/json/json.js'
import { collectBytes } from '../domain/proxy/collect-bytes.js'
import { CofferError, interrupted, invalid, usage } from '../errors.js'
import { IDEMPOTENCY_KEY, takesIdempotencyKey } from '../framework/idempotency/idempotency-key.js'
import type { OperationInput } from '../framework/operation.js'
import type { Outcome } from '../framework/outcome.js'
import type { RoutedOperation } from '../framework/registry.js'
import { nameHeaders } from '../http/headers.js'
import { readGiven } from './read-given.js'
import { readProblem } from './read-problem.js'
import { type SpelledRequest, spellRequest } from './spell-request.js'

/** The part of `fetch` that is used; a server without a socket has it too. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body?: string; signal: AbortSignal },
) => Promise<FetchedAnswer>

export interface FetchedAnswer {
  readonly status: number
  readonly headers: Iterable<[string, string]> & { get(name: string): string | null }
  readonly body: AsyncIterable<Uint8Array> | null
}

export interface HttpClientOptions {
  /** The address of the server, to which the paths of the interface are appended. */
  url: string
  key: string
  /** The prefix of the server's header names; default `svc`. */
  prefix?: string
  fetch: Fetch
  /** Aborts the client's calls. */
  signal?: AbortSignal
  /** The limit of one attempt, connecting included; default 60 s. */
  timeoutMs?: number
  /** Makes idempotency keys for POSTs that change data, so that a repeated POST is performed once; absent: no keys. */
  createKey?(): string
  /** Resolves after `ms`, or when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<unknown>
  /** From 0 to 1: spreads the attempts of several clients. */
  random(): number
}

const MIB = 1024 * 1024
/** A page has at most 16 MiB; an answer that cannot be split may have more. */
const MOST_ANSWER_BYTES = 64 * MIB
const DEFAULT_TIMEOUT_MS = 60_000
const MOST_ATTEMPTS = 5
const FIRST_WAIT_MS = 500
/** If a server asks for a longer wait, the call fails. */
const MOST_WAIT_MS = 60_000
/** The characters that a header can carry. */
const KEY = /^[\x21-\x7e]{1,512}$/
const HEADER = /^[\t\x20-\x7e\x80-\xff]*$/

/** @throws CofferError `usage` for a key or prefix that no header can carry */
export function createHttpClient(options: HttpClientOptions) {
  const { key, prefix = 'svc', signal = new AbortController().signal } = options
  if (!KEY.test(key)) throw usage('The API key has characters that no header can carry.')
  const names = nameHeaders(prefix)
  return {
    /**
     * `repeatKey`: the idempotency key, instead of a new one.
     * @throws CofferError those of the server; `unavailable`, `request_timeout`, `interrupted`
     */
    async call(
      definition: RoutedOperation,
      input: OperationInput,
      repeatKey = createKey(options, definition),
    ): Promise<Outcome> {
      const spelled = spellRequest(definition, input)
      const headers: Record<string, string> = { [names.apiKey]: key, accept: ACCEPT }
      if (spelled.contentType !== undefined) headers['content-type'] = spelled.contentType
      if (repeatKey !== undefined && takesIdempotencyKey(definition)) {
        if (!HEADER.test(repeatKey)) throw invalid(IDEMPOTENCY_KEY, 'has characters that no header can carry')
        headers[names.idempotencyKey] = repeatKey
      }
      for (let attempt = 1; ; attempt++) {
        const answer = await send(options, spelled, headers, signal)
        const replay = answer.headers.get(names.replayed) === 'true' ? ({ isReplayed: true } as const) : {}
        const given = readGiven(definition, { ...answer, parse: readJson }, prefix)
        if (given !== undefined) return { ...given, ...replay }
        const { status, body, retryAfter } = readAnswer(answer)
        if (status < 300) return { status, result: body, ...replay }
        const error = readProblem(definition, { status, body, retryAfter }, prefix)
        const waitMs = waitBefore(attempt, error, options.random)
        if (waitMs === undefined) throw error
        await options.wait(waitMs, signal)
        if (signal.aborted) throw interrupted()
      }
    },
  }
}

function createKey({ createKey }: HttpClientOptions, { endpoint, log }: RoutedOperation): string | undefined {
  return endpoint.method === 'POST' && log?.operation !== 'read' ? createKey?.() : undefined
}

const ACCEPT = 'application/json, application/problem+json'

/** How long to wait before the next attempt; undefined if there is none. A 503 that reactor code chose is final. */
function waitBefore(attempt: number, error: CofferError, random: () => number): number | undefined {
  const isBusy = error.code === 'rate_limited' || (error.code === 'unavailable' && error.status === 503)
  if (!isBusy || attempt === MOST_ATTEMPTS) return undefined
  const backOffMs = FIRST_WAIT_MS * 2 ** (attempt - 1) * (0.5 + random() / 2)
  const askedMs = (error.retryAfterSeconds ?? 0) * 1000
  return askedMs > MOST_WAIT_MS ? undefined : Math.max(askedMs, backOffMs)
}

type WholeAnswer = Omit<FetchedAnswer, 'body'> & { text: string }

async function send(
  { url, fetch, timeoutMs = DEFAULT_TIMEOUT_MS }: HttpClientOptions,
  { method, target, body }: SpelledRequest,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<WholeAnswer> {
  const late = AbortSignal.timeout(timeoutMs)
  const init = { method, headers, signal: AbortSignal.any([late, signal]) }
  try {
    const sent = body === undefined ? init : { ...init, body }
    const answer = await fetch(url.replace(/\/+$/, '') + target, sent)
    const { status, headers: read } = answer
    const text = decodeUtf8(await collect(answer.body), 'the answer')
    // Aborting ends the connection, which looks like the end of a body without a length.
    init.signal.throwIfAborted()
    return { status, headers: read, text }
  } catch (error) {
    if (error instanceof CofferError) throw error
    if (signal.aborted) throw interrupted()
    const doubt = method === 'GET' ? '' : ' It may have performed the request: look before you repeat it.'
    if (late.aborted) {
      const message = `The server did not answer within ${timeoutMs / 1000} s.${doubt}`
      throw new CofferError('request_timeout', message, { cause: error })
    }
    const message = `The connection to the server failed (${nameFailure(error)}).${doubt}`
    throw new CofferError('unavailable', message, { cause: error })
  }
}

/** `body`: undefined for an empty one, and for a problem that is not JSON. */
function readAnswer({ status, headers, text }: WholeAnswer) {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  const retryAfter = Number.isFinite(seconds) && seconds >= 0 ? Math.ceil(seconds) : undefined
  if (status >= 300 && status < 400) {
    // Following the redirect would send the key to another address.
    const message = 'The server redirects elsewhere. Give the address of the vault itself.'
    throw new CofferError('unavailable', message)
  }
  if (status >= 300) return { status, body: parseJsonOrNothing(text), retryAfter }
  if (status === 204 || text === '') return { status, body: undefined }
  if (headers.get('content-type')?.includes('json')) return { status, body: readJson(text) }
  throw new CofferError('unavailable', 'The server answered something else than JSON. Is its address right?')
}

function readJson(text: string): unknown {
  return parseJson(text, { source: 'the answer of the server' })
}

async function collect(body: FetchedAnswer['body']): Promise<Uint8Array> {
  const bytes = await collectBytes(body ?? [], MOST_ANSWER_BYTES)
  if (bytes !== undefined) return bytes
  const limit = `${MOST_ANSWER_BYTES / MIB} MiB`
  throw new CofferError('unavailable', `The answer is larger than the limit of ${limit}.`)
}

/** The name of a failure, without its message, which may quote the request. */
function nameFailure(error: unknown): string {
  const { code, cause, name } = error as { code?: unknown; cause?: { code?: unknown }; name?: unknown }
  const known = [code, cause?.code, name].find((each) => typeof each === 'string' && /^\w{1,60}$/.test(each))
  return String(known ?? 'unknown reason')
}
