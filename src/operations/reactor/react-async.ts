/**
 * Runs a reactor asynchronously, after the request was answered. The result of the run is kept for a day, or sent to
 * the `callback_url` of the request.
 */
import { sizeOf } from '../../domain/expression/budget.js'
import { tryJson } from '../../domain/json/json.js'
import { addError, refuseErrors } from '../../domain/property-errors.js'
import { laneOfCallback } from '../../domain/reactor/callback.js'
import { withoutRunKeys, withoutRunKeysIn } from '../../domain/reactor/run-key.js'
import { isConfigurable } from '../../domain/reactor/runtime.js'
import type { CallbackRecord, ReactorResultRecord } from '../../domain/records/records.js'
import { CofferError, fromSent, noRevealError, toProblem, toSent, validationError } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { Context, Session } from '../../framework/context.js'
import { findCards, firstEnd, withoutCodes } from '../../framework/kept-answer.js'
import { detached } from '../../framework/operation.js'
import { HttpAnswer } from '../../framework/outcome.js'
import { object, uuid } from '../../framework/output.js'
import type { Claim } from '../../framework/ports/background.js'
import { inputSchema } from '../../framework/schema.js'
import { requireRecord } from '../../framework/unit.js'
import type { FoundExpressions } from '../token/detokenize.js'
import { refusalOf } from '../webhook/waiting.js'
import * as react from './react.js'
import { reactorId, runningReactor } from './reactor.js'

const KEPT_MS = 24 * 60 * 60 * 1000
/** A run can wait for 1,000 other runs. If each of them takes 15 minutes, four at a time, the wait is 63 hours. */
const LONGEST_MS = 3 * KEPT_MS

export const reactLater = detached({
  ...react.running,
  name: 'reactor react-async',
  summary: 'Run a reactor later, and get its answer with: coffer reactor result.',
  details:
    'The arguments are checked and detokenized immediately. At most 1,000 runs of an application can wait. Without a\n' +
    'server, the command waits for the end of the run.',
  route: 'POST /reactors/{id}/react-async',
  http: { ...react.running.http, status: 202 },
  output: object({ asyncReactorRequestId: uuid }),
  examples: ['echo Ada | coffer reactor react-async greet --args name=-'],
  check: (request, tools) => react.checkRequest(request, tools, refuseCallback),
  run: (session, input, { found }) => startWithResult(session, input, found, (started) => started),
})

export const reactNow = detached({
  ...react.running,
  name: 'reactor react',
  summary: 'Run a reactor with arguments, in which {{ token id }} stands for the data of the token.',
  details:
    'If a string consists of only one expression, the value keeps its JSON type. Inside other text, the value becomes text. At most\n' +
    '100 tokens. Parameters that the formula declares are converted to their types, and required unless they are optional.\n' +
    'The setting reactors.undeclared_args decides whether other parameters are passed on. If code returns an HTTP answer of\n' +
    'its own, the command prints this answer as res. With callback_url in the body, the run begins later, and its answer is\n' +
    'sent to this address.',
  route: 'POST /reactors/{id}/react',
  http: { ...react.running.http, mayAnswer: 'anything' },
  output: react.responseOutput,
  examples: [
    `echo Ada | coffer reactor react greet --args name=-`,
    `echo '{"args":{"name":"{{ ada | json: \\"$.name\\" }}"}}' | coffer reactor react greet`,
  ],
  async run(session, input, { found, callback }) {
    if (callback !== undefined) return startWithCallback(session, input, found, callback)
    // Durability `soon` is enough for a unit of work that stores only log records.
    const prepared = await session.inUnit(
      async (context) =>
        (await runsLater(context, input.id)) ? undefined : react.prepare(context, session, input, found),
      'soon',
    )
    if (prepared !== undefined) return react.invoke(session, prepared)
    return startWithResult(
      session,
      input,
      found,
      (body) => new HttpAnswer({ statusCode: 202, headers: {}, body }),
    )
  },
})

/** The option `async` has no effect with the image `node-bt`. */
async function runsLater(context: Context, id: string): Promise<boolean> {
  const { runtime } = runningReactor(await requireRecord(context, 'reactor', id), context.now)
  return isConfigurable(runtime?.image) && runtime?.async === true
}

function refuseCallback(): never {
  throw validationError('is not supported by react-async: use react')
}

type Input = { id: string; args?: Readonly<Record<string, unknown>> }

function startWithResult<T>(
  session: Session,
  input: Input,
  found: FoundExpressions | undefined,
  answerOf: (started: { asyncReactorRequestId: string }) => T,
): Promise<T> {
  return start(session, input, found, {
    async begin(context, id) {
      const started_by = starterKey(context.caller)
      const record: ReactorResultRecord = { id, reactor_id: input.id, started_by, created_at: context.date }
      const options = { expires: context.now + LONGEST_MS + KEPT_MS, fresh: true }
      await context.store.insert('reactor_result', context.caller.tenant, record, options)
      return answerOf({ asyncReactorRequestId: id })
    },
    keep: keepResult,
  })
}

async function startWithCallback(
  session: Session,
  input: Input,
  found: FoundExpressions | undefined,
  callback: URL,
): Promise<HttpAnswer> {
  if (session.caller.isNoReveal) throw noRevealError('callback_url')
  const refusal = refusalOf(await session.outbound(), callback.href)
  const errors = {}
  if (refusal !== undefined) addError(errors, 'callback_url', refusal)
  refuseErrors(errors)
  return start(session, input, found, {
    begin: async () => new HttpAnswer({ statusCode: 202, headers: {} }),
    keep: (session, id, prepared) => sendCallback(session, { id, url: callback.href }, prepared),
  })
}

interface Work<T> {
  /** Is called in the unit of work that answers the request. `id`: the id of the run. */
  begin(context: Context, id: string): Promise<T>
  /** The returned function stores the answer of the run, in the unit of work that stores the run. */
  keep(session: Session, id: string, prepared: react.Prepared): react.Keep
}

async function start<T>(
  session: Session,
  input: Input,
  found: FoundExpressions | undefined,
  { begin, keep }: Work<T>,
): Promise<T> {
  const { background, caller, claims } = session
  const id = session.createUuid()
  const place = background.reserve(`${caller.tenant}/${react.callerKey(caller)}`, id)
  let prepared: react.Prepared | undefined
  let claim: Claim | undefined
  try {
    // This claim shows other processes that the run is in progress.
    claim = await claims.take(caller.tenant, id, { isLong: true })
    const answer = await session.conclude(async (context) => {
      prepared = await react.prepare(context, session, input, found, id)
      const { args, rest, code } = prepared.invocation
      place.keeps(sizeOf(args) + sizeOf(rest) + code.length)
      // Logs nothing, because a successful run is logged later. Links the reactor to the stored answer of an
      // idempotency key.
      context.audit.record('reactor', input.id, null)
      return begin(context, id)
    })
    place.fill(() => runAndKeep(session, prepared!, keep(session, id, prepared!)).finally(() => claim?.end()))
    return answer
  } catch (error) {
    place.leave()
    await claim?.end()
    throw error
  }
}

export const getResult = detached({
  name: 'reactor result',
  summary: 'Get the answer of a react-async run, for 24 hours after the run has ended.',
  details: 'A run that has not ended is not found. A run fails if the server stops before the run has ended.',
  ...react.invoking,
  route: 'GET /reactors/{id}/results/{request_id}',
  http: { mayAnswer: 'anything' },
  input: inputSchema(['id', 'request_id'], {
    id: reactorId,
    request_id: { type: 'string', description: 'The asyncReactorRequestId of the run.' },
  }),
  output: react.responseOutput,
  examples: [
    'coffer reactor result greet "$(echo Ada | coffer reactor react-async greet --args name=- -o value --fields asyncReactorRequestId)"',
  ],
  async run({ background, claims, inUnit, caller }, { id, request_id }) {
    // `isRunning` is read before the result. If the run ends between the two reads, the second read finds the result.
    const isRunning = background.has(request_id) || (await claims.has(caller.tenant, request_id))
    const { error, res, result } = await inUnit(async (context) => {
      await requireRecord(context, 'reactor', id)
      const record = await context.store.get('reactor_result', caller.tenant, request_id)
      const isOwn = record?.reactor_id === id && record.started_by === starterKey(caller)
      const isInterrupted = isOwn && !isRunning && context.now - Date.parse(record.created_at) < KEPT_MS
      const ended = record?.ended ?? (isInterrupted ? INTERRUPTED : undefined)
      if (!isOwn || ended === undefined)
        throw new CofferError('not_found', 'There is no result with this id, or its run has not ended yet.')
      return ended
    }, 'soon')
    if (error !== undefined) throw fromSent(error)
    return res === undefined ? (result as react.Response) : new HttpAnswer(res)
  },
})

/**
 * A caller may read only results with the same starter key. Each session has a separate key, because another session
 * of the application may have fewer rights. A caller in no-reveal mode also has a separate key.
 */
function starterKey(caller: Caller): string {
  const key =
    caller.session === undefined ? react.callerKey(caller) : `${react.callerKey(caller)}/${caller.session.id}`
  return caller.isNoReveal ? `${key}/no-reveal` : key
}

const INTERRUPTED: ReactorResultRecord['ended'] = {
  error: { code: 'reactor_failed', message: 'Reactor interrupted', status: 500 },
}

/** Never rejects. If the answer cannot be stored, the run counts as interrupted, as if the server had stopped. */
async function runAndKeep(session: Session, prepared: react.Prepared, keep: react.Keep): Promise<void> {
  const { background } = session
  const keptErrors = new Set<unknown>()
  const keepUnlessStopped: react.Keep = async (context, answer) => {
    if (answer instanceof CofferError) keptErrors.add(answer)
    if (!(background.isClosed && answer instanceof CofferError)) await keep(context, answer)
  }
  const keepError = async (error: unknown) => {
    // The error was already stored together with the run.
    if (keptErrors.has(error)) return
    await session.record((context) => keepUnlessStopped(context, fromSent(toSent(error))))
  }
  await react
    .invoke(session, prepared, keepUnlessStopped)
    .catch(keepError)
    .catch(() => undefined)
}

function keepResult(_: Session, id: string, prepared: react.Prepared): react.Keep {
  return async (context, answer) => {
    const { store, caller } = context
    const record = await store.get('reactor_result', caller.tenant, id)
    // The record is missing if the reactor was deleted.
    if (record === undefined) return
    const whole = withoutRunKeysIn(toEnded(answer))
    const cards = [...prepared.cards, ...(await findCards(store, caller.tenant, whole))]
    const ended = withoutCodes(whole, cards)
    await store.replace(
      'reactor_result',
      caller.tenant,
      { ...record, ended },
      { expires: endOf(context, ended, cards) },
    )
  }
}

/**
 * The vault cannot recognize a verification code in every part of an answer. Therefore the whole answer
 * expires together with the verification code.
 */
function endOf({ store, now }: Context, answer: unknown, cards: react.Prepared['cards']): number {
  return Math.min(now + KEPT_MS, firstEnd(store, JSON.stringify(answer) ?? '', cards))
}

function sendCallback(
  { traceId }: Session,
  { id, url }: { id: string; url: string },
  { invocation, cards: given }: react.Prepared,
): react.Keep {
  return async (context, answer) => {
    const { store, caller, date } = context
    const { tenant } = caller
    const { reactor } = invocation
    if ((await store.get('reactor', tenant, reactor)) === undefined) return
    const { content_type, body } = toMessage(answer, traceId)
    const cards = [...given, ...(await findCards(store, tenant, tryJson(body)))]
    const expires = endOf(context, body, cards)
    const times = { due_at: date, created_at: date, expires }
    const fresh = { state: 'waiting', attempts: 0, trace_id: traceId, ...times } as const
    const message = { content_type, body: withoutRunKeys(body) }
    const record: CallbackRecord = { id, reactor_id: reactor, url, ...message, ...fresh }
    await store.insert('callback', tenant, record, { expires, fresh: true })
    context.enqueue([{ kind: 'callback', tenant, lane: laneOfCallback(url), id }])
  }
}

/** Returns the body that `POST /reactors/{id}/react` would have returned. */
function toMessage(
  answer: Parameters<react.Keep>[1],
  traceId: string,
): Pick<CallbackRecord, 'content_type' | 'body'> {
  if (answer instanceof CofferError)
    return { content_type: 'application/problem+json', body: JSON.stringify(toProblem(answer, traceId)) }
  if (!(answer instanceof HttpAnswer))
    return { content_type: 'application/json', body: JSON.stringify(answer) }
  const { headers, body } = answer.answer
  const isText = typeof body === 'string'
  const content_type = headers['content-type'] ?? (isText ? 'text/plain; charset=utf-8' : 'application/json')
  return { content_type, body: body === undefined ? '' : isText ? body : JSON.stringify(body) }
}

function toEnded(answer: Parameters<react.Keep>[1]): NonNullable<ReactorResultRecord['ended']> {
  if (answer instanceof CofferError) return { error: toSent(answer) }
  return answer instanceof HttpAnswer ? { res: answer.answer } : { result: answer }
}
