import {
  type HeaderMap,
  passAnswerHeaders,
  readCodeAnswer,
  readHeaders,
  textOfBody,
} from '../../domain/proxy/code-answer.js'
import type { ProxyTransform } from '../../domain/proxy/proxy.js'
import type { RuntimeOptions } from '../../domain/reactor/reactor.js'
import type { ProxyRecord } from '../../domain/records/records.js'
import { CofferError, RUNTIME_ERROR, validationError } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { Session } from '../../framework/operation.js'
import { answerWhole, type OutboundAnswer } from '../../framework/ports/outbound.js'
import type { Transformed, TransformInput } from '../../framework/ports/reactors.js'
import { callerKey, grantedCaller, rightsKey } from '../reactor/react.js'
import { createClientCall } from '../reactor/reactor-client.js'

/** Statuses whose answers have no body (RFC 9110, 15). */
const WITHOUT_BODY: readonly number[] = [204, 205, 304]
/** Headers that keep a browser from running what others made as ours. */
export const CONTAINED = { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' }

export interface OpenProxy {
  base: URL
  proxy: ProxyRecord | undefined
  bound: Caller | undefined
  settings: Readonly<Record<string, unknown>>
  prefix: string
}

/** May give an answer instead. @throws CofferError of the code; `validation`, `bad_gateway` for no text */
export async function transform(
  session: Session,
  opened: OpenProxy,
  given: TransformInput,
): Promise<{ message: { headers: HeaderMap; body: Uint8Array }; answer?: OutboundAnswer }> {
  const { direction } = given
  let message = given
  for (const [index, each] of (opened.proxy?.[`${direction}_transforms`] ?? []).entries()) {
    if (textOfBody(message.headers, message.body) === undefined)
      throw direction === 'request'
        ? validationError('A transform needs a body that is UTF-8 text.')
        : new CofferError('bad_gateway', 'The answer of the destination is not text.')
    const [{ headers, answer }, body] = await run(session, opened, each, index, message)
    if (answer !== undefined)
      return { message, answer: orFailed(() => toAnswer(answer, headers, body, opened.prefix)) }
    message = {
      ...message,
      headers: headers === undefined ? message.headers : orFailed(() => readHeaders(headers, 'headers')),
      body: body ?? message.body,
    }
  }
  return { message }
}

/** @throws CofferError `validation` for a status or headers that an answer cannot have */
function toAnswer(
  { statusCode: givenStatus, isJson }: NonNullable<Transformed['answer']>,
  givenHeaders: unknown,
  body: Uint8Array | undefined,
  prefix: string,
): OutboundAnswer {
  const { statusCode, headers } = readCodeAnswer({ statusCode: givenStatus, headers: givenHeaders }, prefix)
  const isBare = body === undefined || WITHOUT_BODY.includes(statusCode)
  const type = `${isJson ? 'application/json' : 'text/plain'}; charset=utf-8`
  const allHeaders = {
    ...(isBare ? {} : { 'content-type': type }),
    'cache-control': 'no-store',
    ...passAnswerHeaders(headers, prefix),
    ...CONTAINED,
  }
  return answerWhole(statusCode, allHeaders, isBare ? new Uint8Array() : body)
}

function orFailed<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    const errors = { error: [error.message] }
    throw new CofferError('reactor_failed', RUNTIME_ERROR, { errors })
  }
}

async function run(
  session: Session,
  { proxy, bound, settings }: OpenProxy,
  transform: ProxyTransform,
  index: number,
  message: TransformInput,
): Promise<[Transformed, body: Uint8Array | undefined]> {
  const { caller } = session
  const isCode = 'code' in transform
  const runtime: Partial<RuntimeOptions> = (isCode && transform.options?.runtime) || {}
  const client = isCode ? (bound ?? grantedCaller(caller, runtime)) : undefined
  const reactors = await session.reactors(settings)
  const { outcome } = await reactors.run({
    tenant: caller.tenant,
    caller: callerKey(caller),
    session: caller.session?.id,
    rights: bound === undefined ? rightsKey(client, runtime) : client?.actor.id,
    reactor: `proxy/${proxy?.id}/${message.direction}/${index}`,
    args: undefined,
    code: isCode ? transform.code : MASK_PROGRAM,
    configuration: isCode ? (proxy?.configuration ?? {}) : transform,
    // A mask is applied to text, whatever the type of the answer.
    message: isCode ? message : { ...message, headers: { 'content-type': 'text/plain' } },
    client: client === undefined ? null : createClientCall(session, client),
    timeMs: runtime.timeout && runtime.timeout * 1000,
  })
  if (outcome.kind === 'failure') throw outcome.error
  const { raw, res, body } = outcome
  if (res === undefined) return [(raw ?? {}) as Transformed, body]
  const { statusCode, headers } = res
  const isJson = typeof res.body !== 'string'
  const text = isJson ? JSON.stringify(res.body) : (res.body as string)
  return [{ headers, answer: { statusCode, isJson } }, new TextEncoder().encode(text)]
}

/**
 * Replaces, character by character, every part of a match of `expression` that equals one of its captured values; or the
 * 45th to 63rd character of each line that begins with T74V. It runs where time and memory are limited, because an
 * expression may backtrack. Half of a surrogate pair stands for the whole character.
 */
export const MASK_PROGRAM = String.raw`module.exports = async ({ args, configuration: { expression, replacement } }) => {
  const text = args.body ?? ''
  const isCovered = new Uint8Array(text.length + 1)
  const cover = ({ 0: matched, index }, value) => {
    for (let at = matched.indexOf(value); at >= 0; at = matched.indexOf(value, at + value.length))
      isCovered.fill(1, index + at, index + at + value.length)
  }
  const pattern = expression === undefined ? /(?<=^|[\r\n])T74V[^\r\n]{40}([^\r\n]{19})/dgu : new RegExp(expression, 'dg')
  for (const match of text.matchAll(pattern)) {
    for (const span of match.indices.slice(1)) if (span !== undefined) isCovered.fill(1, span[0], span[1])
    if (expression === undefined) continue
    for (const value of new Set(match.slice(1)))
      if (value && value.length < match[0].length) cover(match, value)
  }
  const whole = []
  let pieces = []
  let kept = 0
  for (let at = isCovered.indexOf(1); at >= 0; at = isCovered.indexOf(1, at)) {
    if (at > kept && text.codePointAt(at - 1) > 0xffff) at -= 1
    pieces.push(text.slice(kept, at))
    for (kept = at; isCovered[kept] === 1 || kept === at; kept += text.codePointAt(kept) > 0xffff ? 2 : 1)
      pieces.push(replacement)
    at = kept
    if (pieces.length < 100000) continue
    whole.push(pieces.join(''))
    pieces = []
  }
  return { body: whole.join('') + pieces.join('') + text.slice(kept) }
}`
