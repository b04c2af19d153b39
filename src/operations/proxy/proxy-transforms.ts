/** Runs the transforms of a proxy, in the sandbox where code of reactors runs. */
import { passAnswerHeaders, readCodeAnswer } from '../../domain/proxy/code-answer.js'
import type { ProxyTransform } from '../../domain/proxy/proxy.js'
import { textOfBody } from '../../domain/proxy/proxy-body.js'
import type { ProxyRequest } from '../../domain/proxy/proxy-request.js'
import {
  MASK_PROGRAM,
  orFailed,
  type ProxyMessage,
  readReturnedHeaders,
} from '../../domain/proxy/proxy-transform.js'
import type { ProxyRecord } from '../../domain/records/records.js'
import { CofferError, validationError } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { Session } from '../../framework/operation.js'
import { answerWhole, type OutboundAnswer } from '../../framework/ports/outbound.js'
import type { Invocation, Transformed, TransformInput } from '../../framework/ports/reactors.js'
import { nameCaller } from '../reactor/react.js'
import { createClientCall } from '../reactor/reactor-client.js'

/** Statuses whose answers have no body (RFC 9110, 15). */
const WITHOUT_BODY: readonly number[] = [204, 205, 304]

export interface TransformContext {
  proxy: ProxyRecord | undefined
  /** The application that the client of code acts as. */
  bound: Caller | undefined
  settings: Readonly<Record<string, unknown>>
}

/** Returns what to send, or an answer. @throws CofferError that of the code, `validation` for a body that is no text */
export async function transformRequest(
  session: Session,
  context: TransformContext,
  filled: ProxyRequest,
  prefix: string,
): Promise<{ sending: ProxyMessage } | { answer: OutboundAnswer }> {
  const { method, path } = filled
  const query = filled.query === '' ? '' : `?${filled.query}`
  let sending: ProxyMessage = filled
  for (const [index, transform] of (context.proxy?.request_transforms ?? []).entries()) {
    if (textOfBody(sending.headers, sending.body) === undefined)
      throw validationError('A transform needs a body that is UTF-8 text.')
    const { headers, body } = sending
    const input: TransformInput = { direction: 'request', headers, body, method, path, query }
    const { raw, body: made } = await run(session, context, transform, index, input)
    if (raw.answer !== undefined) return { answer: toAnswer(raw, made, prefix) }
    sending = merge(sending, raw, made)
  }
  return { sending }
}

/** @throws CofferError that of the code, `bad_gateway` for a body that is no text */
export async function transformAnswer(
  session: Session,
  context: TransformContext,
  given: ProxyMessage,
): Promise<ProxyMessage> {
  let answer = given
  for (const [index, transform] of (context.proxy?.response_transforms ?? []).entries()) {
    if (textOfBody(answer.headers, answer.body) === undefined)
      throw new CofferError('bad_gateway', 'The answer of the destination is not text.')
    const { raw, body } = await run(session, context, transform, index, { direction: 'response', ...answer })
    answer = merge(answer, raw, body)
  }
  return answer
}

function merge(before: ProxyMessage, { headers }: Transformed, body: Uint8Array = before.body): ProxyMessage {
  return { headers: headers === undefined ? before.headers : readReturnedHeaders(headers), body }
}

/** @throws CofferError `reactor_failed` for a status or headers that an answer cannot have */
function toAnswer(
  { answer, headers }: Transformed,
  body: Uint8Array | undefined,
  prefix: string,
): OutboundAnswer {
  const read = orFailed(() => readCodeAnswer({ statusCode: answer!.statusCode, headers }, prefix))
  const isBare = body === undefined || WITHOUT_BODY.includes(read.statusCode)
  const type = answer!.isJson ? 'application/json' : 'text/plain'
  const headersOf = {
    ...(isBare ? {} : { 'content-type': `${type}; charset=utf-8` }),
    'cache-control': 'no-store',
    ...passAnswerHeaders(read.headers, prefix),
    'content-security-policy': 'sandbox',
    'x-content-type-options': 'nosniff',
  }
  return answerWhole(read.statusCode, headersOf, isBare ? new Uint8Array() : body)
}

/** @throws CofferError that of the code */
async function run(
  session: Session,
  { proxy, bound, settings }: TransformContext,
  transform: ProxyTransform,
  index: number,
  message: TransformInput,
): Promise<{ raw: Transformed; body: Uint8Array | undefined }> {
  const { caller } = session
  const client = transform.type === 'code' ? bound : undefined
  const program =
    transform.type === 'code'
      ? { code: transform.code, configuration: proxy?.configuration ?? {}, message }
      : describeMask(transform, message)
  const invocation: Invocation = {
    tenant: caller.tenant,
    caller: nameCaller(caller),
    session: caller.session?.id,
    rights: client?.actor.id,
    reactor: `proxy/${proxy?.id}/${message.direction}/${index}`,
    args: undefined,
    ...program,
    client: client === undefined ? null : createClientCall(session, client),
  }
  const { outcome } = await (await session.reactors(settings)).run(invocation)
  if (outcome.kind === 'failure') throw outcome.error
  return { raw: (outcome.raw ?? {}) as Transformed, body: outcome.body }
}

function describeMask(
  { expression, replacement }: Extract<ProxyTransform, { type: 'mask' }>,
  message: TransformInput,
) {
  // A mask is applied to text, whatever the type of the answer.
  const text = { ...message, headers: { 'content-type': 'text/plain' } }
  return { code: MASK_PROGRAM, configuration: { expression, replacement }, message: text }
}
