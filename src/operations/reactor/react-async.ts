/** Runs a reactor after its call was answered, and keeps the result of the run for a day. */
import { sizeOf } from '../../domain/expression/budget.js'
import { withoutRunKeysIn } from '../../domain/reactor/run-key.js'
import { isConfigurable } from '../../domain/reactor/runtime.js'
import type { ReactorResultRecord } from '../../domain/records/records.js'
import { CofferError, fromSent, toSent } from '../../errors.js'
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
import * as react from './react.js'
import { reactorId, runningReactor } from './reactor.js'

const KEPT_MS = 24 * 60 * 60 * 1000
/** A record must outlast its run. 1,000 runs of 15 minutes, four at a time, take 63 hours. */
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
  run: (session, input, found) => start(session, input, found, (started) => started),
})

export const reactNow = detached({
  ...react.running,
  name: 'reactor react',
  summary: 'Run a reactor with arguments, in which {{ token id }} stands for the data of the token.',
  details:
    'An expression that is a whole string yields the data with its JSON type; inside text it yields text. At most 100\n' +
    'tokens. Parameters that the formula declares are required and cast; the setting reactors.undeclared_args says\n' +
    'whether others are passed on. Code may also return an HTTP answer of its own, which a command prints as res.',
  route: 'POST /reactors/{id}/react',
  http: { ...react.running.http, mayAnswer: 'anything' },
  output: react.responseOutput,
  examples: [
    `echo Ada | coffer reactor react greet --args name=-`,
    `echo '{"args":{"name":"{{ ada | json: \\"$.name\\" }}"}}' | coffer reactor react greet`,
  ],
  async run(session, input, found) {
    // Durability `soon` is used, here and below, for units that only log reads and the run.
    const prepared = await session.inUnit(
      async (context) =>
        (await runsLater(context, input.id)) ? undefined : react.prepare(context, session, input, found),
      'soon',
    )
    if (prepared !== undefined) return react.invoke(session, prepared)
    return start(session, input, found, (body) => new HttpAnswer({ statusCode: 202, headers: {}, body }))
  },
})

/**
 * Whether the runtime of the reactor requests asynchronous runs. This option has no effect with the image node-bt.
 */
async function runsLater(context: Context, id: string): Promise<boolean> {
  const { runtime } = runningReactor(await requireRecord(context, 'reactor', id), context.now)
  return isConfigurable(runtime?.image) && runtime?.async === true
}

/** Starts a run, and answers at once with the id of its result. */
async function start<T>(
  session: Session,
  input: { id: string; args?: Readonly<Record<string, unknown>> },
  found: FoundExpressions | undefined,
  answerOf: (started: { asyncReactorRequestId: string }) => T,
): Promise<T> {
  const { background, caller, claims } = session
  const id = session.createUuid()
  const place = background.reserve(`${caller.tenant}/${react.callerKey(caller)}`, id)
  let prepared: react.Prepared | undefined
  let claim: Claim | undefined
  try {
    // The claim shows that the run is in progress to other processes that have the vault open.
    claim = await claims.take(caller.tenant, id, { isLong: true })
    const answer = await session.conclude(async (context) => {
      prepared = await react.prepare(context, session, input, found, id)
      const { args, rest, code } = prepared.invocation
      place.keeps(sizeOf(args) + sizeOf(rest) + code.length)
      const started_by = starterKey(caller)
      const record: ReactorResultRecord = { id, reactor_id: input.id, started_by, created_at: context.date }
      const options = { expires: context.now + LONGEST_MS + KEPT_MS, fresh: true }
      await context.store.insert('reactor_result', caller.tenant, record, options)
      // The run itself is logged when it succeeds. This entry links the reactor to the stored answer of an
      // idempotency key.
      context.audit.record('reactor', input.id, null)
      return answerOf({ asyncReactorRequestId: id })
    })
    place.fill(() => runAndKeep(session, id, prepared!).finally(() => claim?.end()))
    return answer
  } catch (error) {
    place.leave()
    await claim?.end()
    throw error
  }
}

export const getResult = detached({
  name: 'reactor result',
  summary: 'Get the answer of a run of react-async, for 24 hours after it ended.',
  details: 'A run that has not ended is not found. A run fails if the server stops before its end.',
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
    // This is read before the result. If the run ends between the two reads, its result is stored already.
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
 * Returns a key for the results that this caller may read. Each session has its own results, because another session
 * of the application may have fewer rights. No-reveal mode has its own results too.
 */
function starterKey(caller: Caller): string {
  const key =
    caller.session === undefined ? react.callerKey(caller) : `${react.callerKey(caller)}/${caller.session.id}`
  return caller.isNoReveal ? `${key}/no-reveal` : key
}

const INTERRUPTED: ReactorResultRecord['ended'] = {
  error: { code: 'reactor_failed', message: 'Reactor interrupted', status: 500 },
}

/**
 * Runs the reactor and stores the result. Never rejects. A run whose result cannot be stored counts as interrupted,
 * like a run that is ended because the server stops.
 */
async function runAndKeep(session: Session, id: string, prepared: react.Prepared): Promise<void> {
  const { background } = session
  const keep: react.Keep = async ({ store, caller, now }, answer) => {
    const record = await store.get('reactor_result', caller.tenant, id)
    const isError = answer instanceof CofferError
    // If the reactor was deleted, there is no record. If an error was stored with the run, the record has ended
    // already.
    if (record === undefined || record.ended !== undefined || (background.isClosed && isError)) return
    const whole = withoutRunKeysIn(toEnded(answer))
    const cards = [...prepared.cards, ...(await findCards(store, caller.tenant, whole))]
    const ended = withoutCodes(whole, cards)
    // The vault cannot recognize a verification code in other parts of the result. Therefore the result expires with
    // the code.
    const options = { expires: Math.min(now + KEPT_MS, firstEnd(store, JSON.stringify(ended), cards)) }
    await store.replace('reactor_result', caller.tenant, { ...record, ended }, options)
  }
  const keepError = (error: unknown) => session.record((context) => keep(context, fromSent(toSent(error))))
  await react
    .invoke(session, prepared, keep)
    .catch(keepError)
    .catch(() => undefined)
}

function toEnded(answer: Parameters<react.Keep>[1]): NonNullable<ReactorResultRecord['ended']> {
  if (answer instanceof CofferError) return { error: toSent(answer) }
  return answer instanceof HttpAnswer ? { res: answer.answer } : { result: answer }
}
