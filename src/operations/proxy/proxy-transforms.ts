/** Runs the transforms of a proxy, in the sandbox where code of reactors runs. */
import { type CodeAnswer, isCodeAnswer } from '../../domain/code-answer.js'
import type { Direction, ProxyTransform } from '../../domain/proxy.js'
import type { ProxyRequest } from '../../domain/proxy-request.js'
import {
  applyMask,
  describeAnswer,
  describeRequest,
  MASK_PROGRAM,
  type ProxyMessage,
  readTransformed,
  textOfAnswer,
} from '../../domain/proxy-transform.js'
import type { ProxyRecord } from '../../domain/records.js'
import type { Caller } from '../../framework/caller.js'
import type { Session } from '../../framework/operation.js'
import type { Invocation } from '../../framework/reactor-runtime.js'
import { nameCaller } from '../reactor/react.js'
import { createClientCall } from '../reactor/reactor-client.js'

export interface TransformContext {
  proxy: ProxyRecord | undefined
  /** The application that the client of code acts as. */
  bound: Caller | undefined
  settings: Readonly<Record<string, unknown>>
}

/** What the transforms make of the request: what is sent, or an answer instead. */
export async function transformRequest(
  session: Session,
  context: TransformContext,
  filled: ProxyRequest,
  prefix: string,
): Promise<ProxyMessage | CodeAnswer> {
  let sending: ProxyMessage = filled
  for (const [index, transform] of (context.proxy?.request_transforms ?? []).entries()) {
    const args = describeRequest({ ...filled, ...sending })
    const result = await run(session, context, transform, { index, direction: 'request', args })
    const given = readTransformed(result, sending, 'request', prefix)
    if (isCodeAnswer(given)) return given
    sending = given
  }
  return sending
}

/** What the transforms make of an answer. @throws CofferError that of the code */
export async function transformAnswer(
  session: Session,
  context: TransformContext,
  given: ProxyMessage,
  prefix: string,
): Promise<ProxyMessage> {
  let answer = given
  for (const [index, transform] of (context.proxy?.response_transforms ?? []).entries()) {
    if (transform.type === 'mask') {
      const text = textOfAnswer(answer)
      const args = { text, expression: transform.expression }
      const spans = await run(session, context, transform, { index, direction: 'response', args })
      answer = { ...answer, body: applyMask(text, spans, transform.replacement) }
      continue
    }
    const args = describeAnswer(answer)
    const result = await run(session, context, transform, { index, direction: 'response', args })
    // On the way back, code has no answer to give instead of one.
    answer = readTransformed(result, answer, 'response', prefix) as ProxyMessage
  }
  return answer
}

/** Runs a transform where code of reactors runs. @throws CofferError that of the code */
async function run(
  session: Session,
  { proxy, bound, settings }: TransformContext,
  transform: ProxyTransform,
  { index, direction, args }: { index: number; direction: Direction; args: Invocation['args'] },
): Promise<unknown> {
  const { caller } = session
  const isCode = transform.type === 'code'
  const client = isCode ? bound : undefined
  const invocation: Invocation = {
    tenant: caller.tenant,
    caller: nameCaller(caller),
    session: caller.session?.id,
    rights: client?.actor.id,
    reactor: `proxy/${proxy?.id}/${direction}/${index}`,
    code: isCode ? transform.code : MASK_PROGRAM,
    args,
    configuration: isCode ? (proxy?.configuration ?? {}) : {},
    client: client === undefined ? null : createClientCall(session, client),
    transforms: direction,
  }
  const { outcome } = await (await session.reactors(settings)).run(invocation)
  if (outcome.kind === 'failure') throw outcome.error
  return outcome.raw
}
