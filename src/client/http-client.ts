/** Performs operations on a server over HTTP. Repeats a request if the server is busy. */

import { decodeUtf8 } from '../domain/json/json.js'
import { collectBytes } from '../domain/proxy/collect-bytes.js'
import { CofferError, interrupted, invalid, usage } from '../errors.js'
import { isStream } from '../framework/content.js'
import type { OperationInput } from '../framework/context.js'
import { IDEMPOTENCY_KEY, isControl, takesIdempotencyKey } from '../framework/declaration.js'
import type { Outcome } from '../framework/outcome.js'
import type { RegisteredOperation, RegisteredRelay, RoutedOperation } from '../framework/registry.js'
import { headerNames } from '../http/headers.js'
import { formatRelayed, formatRequest, type RequestBody } from './format-request.js'
import { readAnswer, type WholeAnswer } from './read-answer.js'

/** The part of `fetch` that the client uses. A vault without a socket implements this function too. */
export type Fetch = (
  url: string,
  init: { method: string; headers: Record<string, string>; body?: RequestBody; signal: AbortSignal },
) => Promise<Pick<WholeAnswer, 'status' | 'headers'> & { readonly body: AsyncIterable<Uint8Array> | null }>

export interface HttpClientOptions {
  url: string
  key: string
  prefix?: string
  /** Requests no-reveal mode from the server. If the server does not support this mode, its answers are not shown. */
  noReveal?: boolean
  fetch: Fetch
  signal?: AbortSignal
  /** The time limit of one attempt, including the connection; default 60 s. */
  timeoutMs?: number
  /** The limit of an answer; default 64 MiB. */
  maxAnswerMib?: number
  /** While the server is busy, a request is repeated at most this many times; default 4. */
  retries?: number
  /** Returns the advice on how to set the prefix, for the error about a server with another prefix. */
  prefixAdvice?(prefix: string): string
  /**
   * Creates idempotency keys for POSTs that change data, so that a repeated POST is performed once. If this function is
   * absent, POSTs have no key.
   */
  createKey?(): string
  wait(ms: number, signal: AbortSignal): Promise<unknown>
  /** Returns a number from 0 to 1, so that several clients do not all repeat their requests at the same time. */
  random(): number
}

/** A page of a list has at most 16 MiB. An answer that cannot be split into pages may be larger. */
const DEFAULT_ANSWER_MIB = 64
const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_RETRIES = 4
const FIRST_WAIT_MS = 500
/** If a server asks for a longer wait, the call fails. */
const MAX_WAIT_MS = 60_000
const KEY = /^[\x21-\x7e]{1,512}$/
const HEADER = /^[\t\x20-\x7e\x80-\xff]*$/

/** @throws CofferError `usage` for a key or prefix that a header cannot carry */
export function createHttpClient(options: HttpClientOptions) {
  const { key, prefix = 'svc', signal = new AbortController().signal } = options
  if (typeof key !== 'string') throw usage('Give an API key, such as coffer.keys.private.')
  if (!KEY.test(key)) throw usage('The API key has characters that no header can carry.')
  const names = headerNames(prefix)
  return {
    /** @throws CofferError the server's error; `unavailable`, `request_timeout`, `interrupted` */
    async call(
      definition: RoutedOperation | RegisteredRelay,
      input: OperationInput,
      repeatKey = needsKey(definition) ? options.createKey?.() : undefined,
    ): Promise<Outcome> {
      const request =
        definition.kind === 'relay'
          ? formatRelayed(definition.relay, input, prefix)
          : formatRequest(definition, input)
      const keyHeader = isControl(definition) ? names.controlKey : names.apiKey
      const headers: Record<string, string> = {
        ...('headers' in request && request.headers),
        [keyHeader]: key,
        accept: returnsContent(definition) ? '*/*' : 'application/json, application/problem+json',
      }
      if (options.noReveal) headers[names.noReveal] = 'true'
      if (request.contentType !== undefined) headers['content-type'] = request.contentType
      if (repeatKey !== undefined && takesIdempotencyKey(definition)) {
        if (!HEADER.test(repeatKey)) throw invalid(IDEMPOTENCY_KEY, 'has characters that no header can carry')
        headers[names.idempotencyKey] = repeatKey
      }
      for (let attempt = 1; ; attempt++) {
        const answer = await send(options, request, headers, signal, returnsContent(definition))
        // The destination of a relay may answer with any status. An error status is then a valid answer.
        if (
          options.noReveal &&
          (definition.kind === 'relay' || answer.status < 300) &&
          !answer.headers.get(names.noReveal)
        )
          throw new CofferError('forbidden', 'The server has no no-reveal mode, so its answer is not shown.')
        const outcome = readAnswer(definition, answer, prefix)
        if (outcome instanceof CofferError) requirePrefix(answer, keyHeader, options)
        else return answer.headers.get(names.replayed) === 'true' ? { ...outcome, isReplayed: true } : outcome
        const waitMs = waitBefore(attempt, outcome, options)
        // A body that is a stream cannot be sent again, because the first attempt has read the stream.
        if (waitMs === undefined || isStream(request.body)) throw outcome
        await options.wait(waitMs, signal)
        if (signal.aborted) throw interrupted()
      }
    },
  }
}

/**
 * Checks that this client sends the header that the server names (RFC 9110, 11.6.1), because the server ignores a key
 * in any other header.
 * @throws CofferError `unauthenticated` if this client sends another header
 */
function requirePrefix(
  { status, headers }: WholeAnswer,
  sent: string,
  { prefixAdvice }: HttpClientOptions,
): void {
  if (status !== 401) return
  const named = /^ApiKey name="(([A-Z][A-Z0-9]{0,19})-(?:API|CONTROL)-KEY)"$/
  const [, wanted, prefix] = named.exec(headers.get('www-authenticate') ?? '') ?? []
  if (prefix === undefined || sent === wanted!.toLowerCase()) return
  const own = prefix.toLowerCase()
  const advice = prefixAdvice?.(own) ?? `Set the option prefix to '${own}'.`
  const what = sent.endsWith('-control-key') ? 'control key' : 'API key'
  const message = `The server reads the ${what} from ${wanted}, and this client sent ${sent.toUpperCase()}. ${advice}`
  throw new CofferError('unauthenticated', message)
}

function returnsContent({ output }: RegisteredOperation): boolean {
  return output !== undefined && 'content' in output
}

const needsKey = ({ endpoint, log }: RegisteredOperation) =>
  endpoint?.method === 'POST' && log?.operation !== 'read'

/**
 * The ms before the next attempt; undefined if there is no next attempt. A 503 that reactor code chose is not repeated.
 */
function waitBefore(attempt: number, error: CofferError, options: HttpClientOptions): number | undefined {
  const { retries = DEFAULT_RETRIES, random } = options
  // A conflict with a retry time means that the first request with this idempotency key is still running.
  const isFirstRunning = error.code === 'conflict' && error.retryAfterSeconds !== undefined
  const isUnavailable = error.code === 'unavailable' && error.status === 503
  const isBusy = error.code === 'rate_limited' || isUnavailable || isFirstRunning
  if (!isBusy || attempt > retries) return undefined
  const backOffMs = FIRST_WAIT_MS * 2 ** (attempt - 1) * (0.5 + random() / 2)
  const askedMs = (error.retryAfterSeconds ?? 0) * 1000
  return askedMs > MAX_WAIT_MS ? undefined : Math.max(askedMs, backOffMs)
}

async function send(
  { url, fetch, timeoutMs = DEFAULT_TIMEOUT_MS, maxAnswerMib = DEFAULT_ANSWER_MIB }: HttpClientOptions,
  { method, target, body }: { method: string; target: string; body?: RequestBody | undefined },
  headers: Record<string, string>,
  interrupt: AbortSignal,
  isContent: boolean,
): Promise<WholeAnswer> {
  const late = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([late, interrupt])
  try {
    const init = { method, headers, signal, ...(body === undefined ? {} : { body }) }
    const answer = await fetch(url.replace(/\/+$/, '') + target, init)
    if (isContent && answer.status < 300)
      return {
        status: answer.status,
        headers: answer.headers,
        text: '',
        pieces: receive(answer.body, signal),
      }
    const bytes = await collectBytes(answer.body ?? [], maxAnswerMib * 1024 * 1024)
    if (bytes === undefined)
      throw new CofferError('unavailable', `The answer is larger than the limit of ${maxAnswerMib} MiB.`)
    // An abort closes the connection, which looks like the end of a body that has no length.
    signal.throwIfAborted()
    return { status: answer.status, headers: answer.headers, text: decodeUtf8(bytes, 'the answer') }
  } catch (error) {
    if (error instanceof CofferError) throw error
    if (interrupt.aborted) throw interrupted()
    const doubt =
      method === 'GET'
        ? ''
        : ' The server may have performed the request: check this before you repeat the request.'
    const [code, message] = late.aborted
      ? (['request_timeout', `The server did not answer within ${timeoutMs / 1000} s.`] as const)
      : (['unavailable', `The connection to the server failed (${describeFailure(error)}).`] as const)
    throw new CofferError(code, message + doubt, { cause: error })
  }
}

/** @throws CofferError `unavailable` if the connection ends before the content is complete */
async function* receive(
  pieces: AsyncIterable<Uint8Array> | null,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* pieces ?? []
    // An abort closes the connection, which looks like the end of a body that has no length.
    signal.throwIfAborted()
  } catch (error) {
    const message = `The connection to the server ended before the content was complete (${describeFailure(error)}).`
    throw new CofferError('unavailable', message, { cause: error })
  }
}

/** Returns the name of a failure, and not its message, which may quote the request. */
function describeFailure(error: unknown): string {
  const { code, cause, name } = error as { code?: unknown; cause?: { code?: unknown }; name?: unknown }
  const known = [code, cause?.code, name].find((each) => typeof each === 'string' && /^\w{1,60}$/.test(each))
  return String(known ?? 'unknown reason')
}
