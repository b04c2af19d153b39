/**
 * Invokes a reactor: detokenizes its arguments, validates them, runs the code, tokenizes the result, and stores the
 * run.
 */
import type { Target } from '../../domain/access/access.js'
import { isObject } from '../../domain/json/json.js'
import { type Lenient, omitUndefined } from '../../domain/omit-undefined.js'
import { collect, collectLater, refuseErrors } from '../../domain/property-errors.js'
import type { CodeAnswer } from '../../domain/proxy/code-answer.js'
import { readCallbackUrl } from '../../domain/reactor/callback.js'
import { castArguments, castConfiguration } from '../../domain/reactor/formula.js'
import { GivenData } from '../../domain/reactor/printed.js'
import {
  failureStatusOf,
  isConfigurable,
  memoryFactorOf,
  type RuntimeOptions,
  timeLimitOf,
} from '../../domain/reactor/runtime.js'
import type { TokenRecord } from '../../domain/records/records.js'
import { settingOf } from '../../domain/settings.js'
import { Secrets, WITHHELD } from '../../domain/text/secrets.js'
import { endsCode } from '../../domain/token/card-code.js'
import type { WebhookEvent } from '../../domain/webhook/events.js'
import { bodyIsNoObject, CofferError, ERRORS, markAsTelling, type PropertyErrors } from '../../errors.js'
import { requireNoRun } from '../../framework/caller/authorize.js'
import { type Caller, withGrant } from '../../framework/caller/caller.js'
import type { Context, Session } from '../../framework/context.js'
import { type CheckTools, requiresAny } from '../../framework/declaration.js'
import { HttpAnswer } from '../../framework/outcome.js'
import { anyJson, component } from '../../framework/output.js'
import type { Invocation, ReactorRun } from '../../framework/ports/reactors.js'
import { type Infer, inputSchema } from '../../framework/schema.js'
import { requireRecord } from '../../framework/unit.js'
import type { StoreReader } from '../../storage/store.js'
import { addSecret, detokenize, type FoundExpressions, findExpressions, USE } from '../token/detokenize.js'
import { notGranted } from '../token/token-access.js'
import { tokenize } from '../token/tokenize.js'
import { loadPackages, requireReady } from './build.js'
import { type CodeActor, type ReadCodeRights, readCodeActor, tokenizingCaller } from './code-actor.js'
import { findFormulaOf, reactorId, runningReactor } from './reactor.js'
import { createClientCall } from './reactor-client.js'
import { keepRun } from './reactor-runs.js'
import { createRunAccess } from './run-access.js'

export const responseOutput = component('ReactorResponse', ['raw', 'tokens'], {
  'tokens?': anyJson('The tokens of the `tokenize` result of the code.'),
  'raw?': anyJson('The `raw` result of the code.'),
})

const SENT_BODY = 'sent_body'

const reactInput = inputSchema(['id'], {
  id: reactorId,
  args: {
    type: 'object',
    additionalProperties: true,
    sensitive: true,
    description: 'An argument, or all arguments as JSON: {"card":"{{ my-token }}"}.',
  },
})

export const invoking = { access: requiresAny('token:use', 'reactor:invoke') } as const

export const running = {
  ...invoking,
  input: reactInput,
  log: { operation: 'react', message: 'Reactor invoked' },
  http: { body: { asSent: SENT_BODY, mayBeAny: true } },
  check: (request: Lenient<Request>, tools: CheckTools) => checkRequest(request, tools),
} as const

export type Keep = (context: Context, answer: Response | HttpAnswer | CofferError) => Promise<void>

/** Creates all tokens of the result or none, in the unit of work that stores the run. @throws CofferError */
export async function invoke(
  session: Session,
  { invocation, runtime, settings, actor, secrets, given, event }: Prepared,
  keep?: Keep,
): Promise<Response | HttpAnswer> {
  const reactors = await session.reactors(settings)
  const packages = await loadPackages(session, runtime, invocation.code)
  const run = await reactors.run({ ...invocation, packages })
  const { outcome } = run
  const { reactor } = invocation
  try {
    if (outcome.kind === 'failure')
      throw secrets === undefined ? outcome.error : scrubError(outcome.error, secrets)
    const { res, isThrown, raw, tokenize: payload } = outcome
    const isFailed = isThrown === true && res!.statusCode >= 400
    const create =
      payload === undefined
        ? undefined
        : await session.prepare(tokenizingCaller(actor), tokenize, { payload }).catch(throwAsTelling)
    const conclude = async (context: Context) => {
      const tokens = await create?.(context).catch(throwAsTelling)
      await keepRun(context, session, reactor, run, res?.statusCode ?? 200, given)
      if (!isFailed) context.audit.record('reactor', reactor, running.log)
      context.audit.emit(endedAs(event, run, isFailed ? ERRORS.reactor_failed.title : undefined))
      const result = omitUndefined({ tokens, raw })
      const answer =
        res === undefined ? scrubResult(result, secrets) : new HttpAnswer(scrubAnswer(res, secrets))
      await keep?.(context, answer)
      return answer
    }
    if (keep !== undefined) return await session.inUnit(conclude)
    return await session.conclude(conclude, create === undefined ? 'soon' : 'now')
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    const keepError = async (context: Context) => {
      await keepRun(context, session, reactor, run, error, given)
      // The event contains the title of the error, because the message may contain data.
      context.audit.emit(endedAs(event, run, ERRORS[error.code].title))
      await keep?.(context, error)
    }
    // `record` checks no rights, because the caller may have been deleted.
    await session.record(keepError, keep === undefined ? 'soon' : 'now')
    throw error
  }
}

/** The message of this error can contain data, because the message quotes property names that the code has chosen. */
function throwAsTelling(error: unknown): never {
  throw markAsTelling(error)
}

/** `raw` is withheld as a whole if `raw` contains a secret. */
function scrubResult({ tokens, raw }: Response, secrets: Secrets | undefined): Response {
  if (secrets === undefined) return omitUndefined({ tokens, raw })
  const isClean = JSON.stringify(secrets.scrub(raw)) === JSON.stringify(raw)
  return omitUndefined({ tokens: secrets.scrub(tokens), raw: isClean ? raw : WITHHELD })
}

function scrubAnswer(answer: CodeAnswer, secrets: Secrets | undefined): CodeAnswer {
  if (secrets === undefined) return answer
  const { statusCode, headers, body } = answer
  const shown = { statusCode: secrets.scrubStatus(statusCode), headers: secrets.scrubMembers(headers) }
  return { ...shown, ...omitUndefined({ body: secrets.scrub(body) }) }
}

export function scrubError({ code, message, status, errors }: CofferError, secrets: Secrets): CofferError {
  const details = secrets.scrubMembers(omitUndefined({ errors }))
  return new CofferError(code, secrets.scrub(message), { status: secrets.scrubStatus(status), ...details })
}

function endedAs(
  { about, more }: Omit<WebhookEvent, 'type'>,
  { durationMs }: ReactorRun,
  error?: string,
): WebhookEvent {
  const ended = { ...about, elapsed_ms: Math.round(durationMs), error }
  return { type: error === undefined ? 'reactor.completed' : 'reactor.failed', about: ended, more }
}

type Json = Record<string, unknown>
type Request = { id: string; args?: Json }

/** Returns the body as the client sent it. If the request had no body, returns the input without the id. */
function bodyOf({ id: _, ...given }: Lenient<Request>): unknown {
  return SENT_BODY in given ? given[SENT_BODY] : given
}

/** A body that is not an object has no arguments. */
function divide(body: unknown): { args?: Json | undefined; rest: unknown } {
  if (!isObject(body)) return { rest: body }
  const { args, ...rest } = body
  return { args: args as Json | undefined, rest }
}

export interface Checked {
  found: FoundExpressions
  /** The address that gets the answer of the run. */
  callback: URL | undefined
}

/** @throws CofferError `validation` for invalid expressions or an invalid `callback_url` */
export async function checkRequest(
  request: Lenient<Request>,
  tools: CheckTools,
  readCallback = readCallbackUrl,
): Promise<Checked> {
  const body = bodyOf(request)
  const errors: PropertyErrors = {}
  const given = isObject(body) ? (body.callback_url ?? undefined) : undefined
  const callback =
    given === undefined ? undefined : collect(errors, 'callback_url', () => readCallback(given))
  const found = await collectLater(errors, 'args', () => findExpressions(body, tools))
  refuseErrors(errors)
  return { found: found!, callback }
}

/**
 * `secrets`: the data to redact in the answer, in no-reveal mode. `given`: the data to redact in the stored output of
 * the run. `cards`: the tokens and token intents in the arguments whose verification code will be deleted.
 */
export type Prepared = Awaited<ReturnType<typeof prepare>>

/** If `found` is undefined, the arguments are the message of a proxy. They are neither detokenized nor cast. */
export async function prepare(
  context: Context,
  session: Session,
  request: Request,
  found: FoundExpressions | undefined,
  asyncId?: string,
) {
  requireNoRun(context.caller)
  const reactor = runningReactor(await requireRecord(context, 'reactor', request.id), context.now)
  requireReady('reactor', reactor, context.now)
  const formula = await findFormulaOf(context, reactor)
  const { configuration, runtime } = reactor
  const actor = await readCodeActor(session, context.store, readRightsOf(context.caller.tenant, reactor.id))
  const { values: settings = {} } = (await context.store.get('settings', 0, 'vault')) ?? {}
  const undeclared = settingOf(settings, 'reactors.undeclared_args')
  const body = bodyOf(request)
  if (!isObject(body) && !isConfigurable(runtime?.image)) throw bodyIsNoObject()
  const document = isObject(body) ? { ...body, ...omitUndefined({ args: request.args }) } : body
  const secrets = context.caller.isNoReveal ? new Secrets() : undefined
  const used: Target[] = []
  const cards: TokenRecord[] = []
  const reached = (record: TokenRecord) => {
    used.push({ id: record.id, containers: record.containers })
    if (endsCode(record)) cards.push(record)
    if (secrets !== undefined) addSecret(secrets, context, record)
  }
  const access = { ...USE, configuration, reached }
  const { args: detokenized, rest } = divide(
    found === undefined ? document : await detokenize(invokingContext(context), document, found, access),
  )
  const invocation_type = asyncId === undefined ? 'sync' : 'async'
  const event = {
    about: { id: reactor.id, name: reactor.name },
    more: { request: omitUndefined({ id: asyncId, invocation_type }) },
  }
  context.audit.emit({ ...event, type: 'reactor.invoked' })
  const requireUse = async (later: Context) => {
    await requireRecord(later, 'reactor', reactor.id)
    const { caller } = invokingContext(later)
    if (used.some((each) => caller.transform(USE.permission, each) === undefined))
      throw notGranted(USE.permission)
  }
  const given = new GivenData()
  const invocation: Invocation = {
    ...invokerOf(session, actor, {
      runtime,
      isAsync: asyncId !== undefined,
      secrets,
      given,
      mayStart: requireUse,
    }),
    reactor: reactor.id,
    code: reactor.code ?? formula?.code ?? '',
    args:
      formula === undefined || found === undefined
        ? detokenized
        : castArguments(formula.request_parameters, detokenized ?? {}, undeclared),
    rest,
    configuration:
      formula === undefined ? configuration : castConfiguration(formula.configuration, configuration),
  }
  for (const each of [invocation.args, rest, invocation.configuration]) given.add(each)
  return {
    actor: actor.application ?? context.caller,
    runtime,
    settings,
    secrets,
    given,
    event,
    invocation,
    cards,
  }
}

/** For the tokens in arguments, the permission reactor:invoke replaces token:use. */
function invokingContext(context: Context): Context {
  return context.as(withGrant('reactor:invoke', context.caller))
}

function readRightsOf(tenant: number, id: string): ReadCodeRights {
  return async (reader: StoreReader) => {
    const reactor = await reader.get('reactor', tenant, id)
    if (reactor === undefined) throw new CofferError('not_found', 'There is no reactor with this id.')
    const { application_id, runtime } = runningReactor(reactor, reader.now)
    return { application_id, runtime }
  }
}

export function callerKey({ actor: { type, id } }: Caller): string {
  return `${type}/${id}`
}

interface Invoking {
  runtime: RuntimeOptions | undefined
  isAsync: boolean
  secrets: Secrets | undefined
  /** Collects data to redact in the output of the code. Undefined if the output is not stored. */
  given?: GivenData
  /** @throws CofferError if the code is no longer allowed to get its arguments */
  mayStart?(context: Context): Promise<void>
}

/** A run may wait until a child process is free, so its rights are checked again when the run starts. */
export function invokerOf(
  session: Session,
  { caller, rights }: CodeActor,
  { runtime, isAsync, secrets, given, mayStart }: Invoking,
) {
  const { tenant, session: own } = session.caller
  return {
    tenant,
    caller: callerKey(session.caller),
    session: own?.id,
    rights,
    client: caller === undefined ? null : createClientCall(session, caller, { secrets, given }),
    access: createRunAccess(session, caller, { secrets, given }),
    image: runtime?.image,
    failureStatus: failureStatusOf(runtime?.image),
    isAsync,
    timeMs: 1000 * timeLimitOf(runtime, isAsync),
    memoryFactor: memoryFactorOf(runtime),
    mayStart: () => session.inUnit(async (context) => mayStart?.(context), 'soon'),
  }
}

export type Response = Infer<typeof responseOutput>
