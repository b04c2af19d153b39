/**
 * The only way to run an operation, for commands, HTTP requests and reactor code. `perform` authorizes the caller,
 * validates the input, and runs and logs the operation, in this order.
 */
import { andThen } from '../domain/awaitable.js'
import { collect, refuseErrors } from '../domain/property-errors.js'
import { CofferError, type PropertyErrors } from '../errors.js'
import type { SubjectCollector } from './audit-entry.js'
import { admit, authorizeNow, requireNoRun, requireOwner } from './caller/authorize.js'
import type { Caller } from './caller/caller.js'
import type { Context, OfflineSession, OperationInput, RequestOrigin, Session } from './context.js'
import {
  type AnyDeclaration,
  type CheckTools,
  IDEMPOTENCY_KEY,
  MAX_KEY_CHARACTERS,
  successOf,
  takesIdempotencyKey,
} from './declaration.js'
import type { Host } from './host.js'
import { type IdempotentAnswer, runIdempotent } from './idempotency.js'
import { EncodedJson, LOCAL_LIMITS, type ResponseLimits, toAnswer } from './limits.js'
import { refuseReveal, showTo } from './no-reveal.js'
import { type AnyOf, type AnyOperation, isOneUnit } from './operation.js'
import { Existing, HttpAnswer, type Outcome } from './outcome.js'
import { itemOutput } from './page.js'
import type { OutboundAnswer, RelayRequest } from './ports/outbound.js'
import { completeValue, dropMistyped } from './schema.js'
import { callerOfUnit, type Execution, runUnit, staleWorkError } from './unit.js'

export interface PerformOptions {
  /** The errors of properties that could not be parsed, reported together with the errors of validation. */
  parseErrors?: Readonly<PropertyErrors>
  /** Limits the size of the answer. If an answer is too large, its transaction is rolled back. */
  limits?: ResponseLimits | undefined
  idempotencyKey?: string | undefined
  /** The header Host of the request. */
  reachedAt?: string | undefined
  origin?: RequestOrigin | undefined
  /** If reactor code sends the request, collects the records of the request for the operation that runs the code. */
  outer?: SubjectCollector | undefined
  /** The result of a build, if the control plane has chosen a result. */
  provision?: CheckTools['provision']
}

interface RelayOptions extends Pick<PerformOptions, 'reachedAt' | 'outer'> {
  traceId: string
  /** The relay has admitted the caller without a key. */
  isAdmitted: boolean
}

/**
 * @throws CofferError `forbidden`, `validation`, or an error of the operation, of `limits` or of {@link runIdempotent}
 */
export function perform(
  host: Host,
  caller: Caller,
  definition: AnyOperation,
  input: OperationInput,
  traceId: string,
  {
    parseErrors,
    limits = LOCAL_LIMITS,
    idempotencyKey: key,
    reachedAt,
    origin,
    outer,
    provision,
  }: PerformOptions = {},
): Promise<Outcome> {
  // Members are passed by name, because V8 stores an object from a spread in a form that is microseconds slower.
  const { generation } = host
  const runAs = (answer?: IdempotentAnswer, errors = parseErrors) =>
    run(
      { host, caller, definition, traceId, reachedAt, generation, limits, answer, outer, origin },
      input,
      errors,
      provision,
    )
  if (key === undefined || !takesIdempotencyKey(definition)) return runAs()
  const runOnce = async () => {
    const admitted = await admit(host.store, caller, definition)
    if (/^[ -~]+$/.test(key) && key.length <= MAX_KEY_CHARACTERS)
      return runIdempotent(host, admitted, { definition, input, key, limits, outer }, runAs)
    const wrong = `must have 1 to ${MAX_KEY_CHARACTERS} printable ASCII characters`
    return runAs(undefined, { ...parseErrors, [IDEMPOTENCY_KEY]: [wrong] })
  }
  return runOnce()
}

const keepAll = (outcome: Outcome) => outcome

async function run(
  asked: Execution,
  input: OperationInput,
  parseErrors?: Readonly<PropertyErrors>,
  provision?: CheckTools['provision'],
) {
  const { host, definition, limits, answer } = asked
  const admitting = admit(host.store, asked.caller, definition)
  const caller = admitting instanceof Promise ? await admitting : admitting
  const execution = caller === asked.caller ? asked : { ...asked, caller }
  const complete = completeValue(definition.input, input) as OperationInput
  refuseReveal(caller, definition, complete)
  const checking = checkInput(host, nowOf(host), definition, complete, parseErrors, provision)
  const checked = checking === undefined ? undefined : await checking
  const isLoggedOnce = definition.access.owner !== undefined && definition.log !== undefined
  if (definition.kind === 'offline')
    throw new CofferError('internal', `${definition.name} cannot run on an open vault.`)
  if (!isOneUnit(definition)) {
    const session = createSession(execution)
    const result = await definition.run(session, complete, checked)
    if (isLoggedOnce) await session.inUnit(recordTenant)
    const outcome = toOutcome(execution, result)
    if (answer?.isStored === false) await runUnit(execution, async () => outcome, 'now', keepAll)
    return outcome
  }
  const work = (context: Context) =>
    andThen(definition.run(context, complete, checked), (out) =>
      andThen(isLoggedOnce ? recordTenant(context) : undefined, () => {
        const outcome = toOutcome(execution, out)
        if (!(out instanceof HttpAnswer)) outcome.result = toAnswer(outcome.result, limits)
        return outcome
      }),
    )
  return runUnit(execution, work, undefined, keepAll)
}

function toOutcome({ caller, definition }: Execution, out: unknown): Outcome {
  if (out instanceof HttpAnswer) {
    const { statusCode, headers, body } = out.answer
    return { status: statusCode, headers, result: body }
  }
  const { output } = definition
  if (out instanceof Existing) return { status: 200, result: showTo(caller, output, out.result) }
  // `present` has already adapted the items of an encoded list.
  const result = out instanceof EncodedJson ? out : showTo(caller, output, out)
  return { status: successOf(definition), result }
}

/** @throws CofferError like {@link perform} */
export async function performRelay(
  host: Host,
  caller: Caller,
  definition: AnyOf<'relay'>,
  request: RelayRequest,
  { traceId, isAdmitted, reachedAt, outer }: RelayOptions,
): Promise<OutboundAnswer> {
  const { generation } = host
  const rest = { host, definition, traceId, reachedAt, outer, generation, limits: LOCAL_LIMITS }
  const execution: Execution = isAdmitted
    ? { ...rest, caller, rights: 'admitted' }
    : { ...rest, caller: await admit(host.store, caller, definition) }
  return definition.relay.run(createSession(execution), request)
}

/**
 * Runs `definition` as the owner, without an open vault. Requires: {@link mayRunOffline} returned true.
 * @throws CofferError `validation`, and the errors of the operation
 */
export async function performOffline(
  session: OfflineSession,
  definition: AnyOf<'offline' | 'detached'>,
  input: OperationInput,
  validate: Host['validate'],
): Promise<unknown> {
  const complete = completeValue(definition.input, input) as OperationInput
  validate(definition, complete)
  if (definition.kind === 'offline') return definition.run(session, complete)
  return definition.whenDamaged!(session, complete)
}

function createSession(execution: Execution): Session {
  const { host, caller, definition, traceId, reachedAt, generation, limits, answer, outer } = execution
  const item = definition.output && itemOutput(definition.output)
  return {
    caller,
    traceId,
    reachedAt,
    subjects: answer ?? outer,
    limits,
    createUuid: host.createUuid,
    deliveries: host.deliveries,
    reactors: async (values) => {
      requireNoRun(caller)
      return host.reactors(values)
    },
    linker: host.linker,
    outbound: host.outbound,
    ownServer: host.ownServer,
    createRunKey: host.createRunKey,
    signer: host.signer,
    expressions: host.expressions,
    turns: host.turns,
    background: host.background,
    claims: host.claims,
    inUnit: (work, durability) => runUnit(execution, work, durability),
    record: (work, durability) => runUnit({ ...execution, rights: 'record' }, work, durability),
    requireRights: async (reader) => {
      if (reader === undefined) await runUnit(execution, () => undefined, 'soon')
      else {
        if (host.generation !== generation) throw staleWorkError()
        await callerOfUnit(execution, reader)
      }
    },
    conclude: (work, durability) =>
      runUnit(execution, work, answer === undefined ? durability : 'now', (result) =>
        toOutcome(execution, result),
      ),
    present: (view) => showTo(caller, item, view),
    vault: () => requireOwner(host, caller),
    control: () => {
      const control = requireOwner(host.control, caller)
      if (control !== undefined) return control
      throw new CofferError(
        'not_found',
        'No server with a control plane has this vault open. Start one: coffer serve --test-controls. Or name one: --url URL',
      )
    },
    prepare: async (other, inner, input) => {
      const admitted = await admit(host.store, other, inner)
      const complete = completeValue(inner.input, input) as OperationInput
      const checked = await checkInput(host, nowOf(host), inner, complete)
      return async (context) => {
        const current = await authorizeNow(admitted, inner, context.store)
        const out = await requireUnit(inner).run(context.as(current, inner.log ?? null), complete, checked)
        return showTo(current, inner.output, out instanceof Existing ? out.result : out)
      }
    },
    perform: async (other, inner, input, innerLimits = LOCAL_LIMITS) => {
      const definition = inner as AnyOperation
      const own = { host, caller: other, definition, traceId, generation, limits: innerLimits }
      return (await run({ ...own, outer: answer ?? outer }, input)).result
    },
  }
}

/** Takes a declaration, because the type of operations would need a circular import. */
function requireUnit(declaration: AnyDeclaration): AnyOf<'query' | 'change'> {
  const operation = declaration as AnyOperation
  if (isOneUnit(operation)) return operation
  throw new CofferError('internal', `${operation.name} does not run in one unit of work.`)
}

async function recordTenant({ store, caller, audit }: Context): Promise<void> {
  const tenant = await store.get('tenant', 0, String(caller.tenant))
  if (tenant !== undefined) audit.record('tenant', tenant.id)
}

function nowOf({ store }: Host): CheckTools['now'] {
  return () => store.read(async ({ now }) => now)
}

/**
 * Reports all errors together. If a property fails several checks, only the errors of its first check are
 * reported. Returns undefined if the operation has no `check`.
 */
export function checkInput(
  host: Pick<Host, 'validate' | 'expressions' | 'turns'> & Partial<Pick<Host, 'linker' | 'compile'>>,
  now: CheckTools['now'],
  definition: AnyDeclaration,
  input: OperationInput,
  parseErrors: Readonly<PropertyErrors> = {},
  provision?: CheckTools['provision'],
): Promise<unknown> | undefined {
  const errors: PropertyErrors = {}
  collect(errors, '', () => host.validate(definition, input))
  Object.assign(errors, parseErrors)
  if (definition.check !== undefined)
    return runCheck(definition, input, { ...toolsOf(host, now), provision }, errors)
  refuseErrors(errors)
  return undefined
}

function toolsOf(
  { expressions, turns, linker, compile }: Pick<CheckTools, 'expressions' | 'turns' | 'linker' | 'compile'>,
  now: CheckTools['now'],
): CheckTools {
  return { expressions, turns, now, ...(linker && { linker }), ...(compile && { compile }) }
}

async function runCheck(
  definition: AnyDeclaration,
  input: OperationInput,
  tools: CheckTools,
  errors: PropertyErrors,
): Promise<unknown> {
  const isFit = Object.keys(errors).length === 0
  let checked: unknown
  try {
    checked = await definition.check!(isFit ? input : dropMistyped(definition.input, input), tools)
  } catch (error) {
    if (!(error instanceof CofferError) || error.errors === undefined) throw error
    // Errors of the schema come first, and replace errors of `check` for the same property.
    refuseErrors({ ...errors, ...error.errors, ...errors })
  }
  refuseErrors(errors)
  return checked
}
