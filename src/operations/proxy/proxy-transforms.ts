import {
  type CodeAnswer,
  type HeaderMap,
  passAnswerHeaders,
  readBodyValue,
  readCodeAnswer,
  readHeaders,
} from '../../domain/proxy/code-answer.js'
import { kindOf, type ProxyTransform } from '../../domain/proxy/transform.js'
import { failureStatusOf } from '../../domain/reactor/runtime.js'
import { CofferError, codeFailed, type FailureStatus, validationError } from '../../errors.js'
import type { Session } from '../../framework/context.js'
import { HttpAnswer } from '../../framework/outcome.js'
import { answerWhole, type OutboundAnswer } from '../../framework/ports/outbound.js'
import type { ReactorOutcome, Transformed, TransformInput } from '../../framework/ports/reactors.js'
import { loadPackages } from '../reactor/build.js'
import { type CodeActor, readCodeActor } from '../reactor/code-actor.js'
import { invoke, invokerOf, prepare } from '../reactor/react.js'
import { applyOptions, MAX_READ_BYTES, type OpenProxy, rightsOfProxy, textOfMessage } from './proxy-values.js'
import { runtimeOf } from './proxy-version.js'

/** The cost of parsing and writing one byte of a body, in steps of the budget for expressions. */
const STEPS_OF_BYTE = 3
/** Statuses whose answers have no body (RFC 9110, 15). */
export const WITHOUT_BODY: readonly number[] = [204, 205, 304]
/**
 * These headers tell a browser not to run the content of a destination as if it were content of this server.
 */
export const CONTAINED = { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' }

interface TransformedMessage {
  message: { statusCode?: number; headers: HeaderMap; body: Uint8Array }
  /** If a transform returned an answer, this answer is sent instead of the message. */
  answer?: OutboundAnswer
}

/**
 * Applies the transforms of a proxy to a message.
 * @throws CofferError if the code fails, `validation` or `bad_gateway` if the body is not text, or `unauthenticated` or
 * `forbidden` if the caller has lost its rights
 */
export async function transform(
  session: Session,
  opened: OpenProxy,
  given: TransformInput,
): Promise<TransformedMessage> {
  const { direction } = given
  const reactor = opened.proxy?.[`${direction}_reactor_id`]
  const transforms = opened.proxy?.[`${direction}_transforms`] ?? []
  if (reactor === undefined && transforms.length === 0) return { message: given }
  const transformed =
    reactor === undefined
      ? await applyTransforms(session, opened, transforms, given)
      : await runReactor(session, opened, reactor, given)
  // The rights may have changed while the code ran.
  await session.requireRights()
  return transformed
}

async function applyTransforms(
  session: Session,
  opened: OpenProxy,
  transforms: readonly ProxyTransform[],
  given: TransformInput,
): Promise<TransformedMessage> {
  let message = given
  for (const [index, each] of transforms.entries()) {
    if (!['code', 'mask'].includes(kindOf(each))) {
      message = await applyOptions(session, opened, each, message)
      session.turns.use(STEPS_OF_BYTE * message.body.length)
      if (session.turns.isOver) await session.turns.next()
      continue
    }
    textOfMessage(message)
    const outcome = await run(session, opened, each, index, message)
    const failureStatus = failureStatusOf(runtimeOf(each)?.image)
    const given = message
    const changed = orFailed(failureStatus, () => applyOutcome(given, outcome, opened.prefix))
    if (changed.answer !== undefined) return changed
    message = changed.message
  }
  return { message }
}

/**
 * Applies the outcome of a transform to the message.
 * @throws CofferError `validation` if the outcome cannot be sent
 */
function applyOutcome(
  message: TransformInput,
  { raw, res, body }: Exclude<ReactorOutcome, { kind: 'failure' }>,
  prefix: string,
): { message: TransformInput; answer?: OutboundAnswer } {
  if (res !== undefined) return { message, answer: writeAnswer(res, prefix) }
  const { headers, statusCode, answer } = (raw ?? {}) as Transformed
  if (answer !== undefined) return { message, answer: toAnswer({ ...answer, headers }, body, prefix) }
  const changed = {
    headers: changeHeaders(message, headers, 'headers'),
    body: body ?? message.body,
    ...changeStatus(statusCode, prefix),
  }
  return { message: { ...message, ...changed } }
}

/**
 * Reads the answer that code returns instead of a message.
 * @throws CofferError `validation` if the answer is invalid
 */
function toAnswer(
  { isJson, ...given }: { statusCode: unknown; headers: unknown; isJson: boolean },
  body: Uint8Array | undefined,
  prefix: string,
): OutboundAnswer {
  const { statusCode, headers } = readCodeAnswer(given, prefix)
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

/**
 * Reads a value that code returned. If `read` refuses the value, the run of the code counts as failed.
 * @throws CofferError `reactor_failed`
 */
function orFailed<T>(failureStatus: FailureStatus | undefined, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    throw codeFailed(error.message, failureStatus)
  }
}

async function run(
  session: Session,
  { proxy, settings, secrets }: OpenProxy,
  transform: ProxyTransform,
  index: number,
  message: TransformInput,
) {
  const isCode = 'code' in transform
  const actor = isCode ? await readActor(session, proxy!.id, transform.code, index, message) : NO_ACTOR
  const reactors = await session.reactors(settings)
  const { outcome } = await reactors.run({
    packages: isCode ? await loadPackages(session, runtimeOf(transform), transform.code) : [],
    ...invokerOf(session, actor, { runtime: runtimeOf(transform), isAsync: false, secrets }),
    reactor: `proxy/${proxy?.id}/${message.direction}/${index}`,
    args: undefined,
    code: isCode ? transform.code : MASK_PROGRAM,
    configuration: isCode ? (proxy?.configuration ?? {}) : transform,
    // A mask applies to text, whatever the content type is.
    message: isCode ? message : { ...message, headers: { 'content-type': 'text/plain' } },
  })
  if (outcome.kind === 'failure') throw outcome.error
  return outcome
}

/**
 * The actor of a mask has no rights, because the program of a mask is part of Coffer and calls no operation.
 */
const NO_ACTOR: CodeActor = {
  caller: undefined,
  application: undefined,
  actsAs: undefined,
  rights: undefined,
}

function readActor(
  session: Session,
  proxyId: string,
  text: string,
  index: number,
  { direction }: TransformInput,
): Promise<CodeActor> {
  const readRights = rightsOfProxy(session.caller.tenant, proxyId, { direction, index, text })
  return session.inUnit(({ store }) => readCodeActor(session, store, readRights), 'soon')
}

/** Like {@link toAnswer}, but for a body that is a JSON value or text. */
function writeAnswer({ body, ...given }: CodeAnswer, prefix: string): OutboundAnswer {
  const isJson = typeof body !== 'string'
  const text = isJson ? (JSON.stringify(body) ?? '') : body
  return toAnswer({ ...given, isJson }, new TextEncoder().encode(text), prefix)
}

/**
 * Runs a reactor that changes the message. The reactor returns the new body and headers as `raw.body` and
 * `raw.headers`.
 */
async function runReactor(session: Session, { prefix }: OpenProxy, id: string, message: TransformInput) {
  const { direction: _, body: bytes, ...args } = message
  const body = readBodyValue(message.headers, textOfMessage(message, MAX_READ_BYTES))
  const request = { id, args: { ...args, body } }
  const prepared = await session.inUnit((context) => prepare(context, session, request, undefined), 'soon')
  const result = await invoke(session, prepared)
  return orFailed(prepared.invocation.failureStatus, () => {
    if (result instanceof HttpAnswer) return { message, answer: writeAnswer(result.answer, prefix) }
    const { body: changed, headers } = (result.raw ?? {}) as Partial<Record<string, unknown>>
    if ((changed ?? undefined) === undefined) throw validationError('The reactor returned no raw.body.')
    const text = typeof changed === 'string' ? changed : JSON.stringify(changed)
    const read = changeHeaders(message, headers, 'raw.headers')
    return { message: { ...message, headers: read, body: new TextEncoder().encode(text) } }
  })
}

/** If the code returned null or no headers, the headers do not change. */
function changeHeaders({ headers }: TransformInput, given: unknown, named: string): HeaderMap {
  return (given ?? undefined) === undefined ? headers : readHeaders(given, named)
}

/**
 * If the code returned null or no status, the status does not change.
 * @throws CofferError `validation` if the status is invalid for an answer
 */
function changeStatus(given: unknown, prefix: string): { statusCode?: number } {
  if ((given ?? undefined) === undefined) return {}
  return { statusCode: readCodeAnswer({ statusCode: given }, prefix).statusCode }
}

/**
 * Replaces parts of the text, character by character. In each match of `expression`, the program replaces every part
 * that equals a captured value. For the matcher `chase_stratus_pan`, the program replaces the 45th to 63rd character
 * of each line that begins with T74V. A character that consists of two UTF-16 units is replaced as a whole, even if
 * the expression captures only one of the two units. The program runs in a child process with limited time and
 * memory, because an expression may backtrack.
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
