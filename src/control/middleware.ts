/**
 * What requests pass on their way to a vault with a control plane: the plane itself under `/_coffer/` and the dashboard,
 * for this machine alone; forks, which are known by their keys and links; faults; and the record of requests.
 */
import { STATUS_CODES } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { formatDate } from '../domain/dates.js'
import { ACCEPT_PATH } from '../domain/invitation.js'
import { parseJsonOrNothing } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { CofferError, ERRORS, type ErrorCode } from '../errors.js'
import { authenticate } from '../framework/authenticate.js'
import type { FaultRule, RequestRecord } from '../framework/control-port.js'
import { type ExplainedDecision, noteDecisions } from '../framework/decisions.js'
import { CONTROL_PATH } from '../framework/operation.js'
import type { RegisteredOperation } from '../framework/registry.js'
import { staleWorkError } from '../framework/unit.js'
import type { AccessEntry } from '../http/access-log.js'
import { type Answerer, splitTarget } from '../http/answerer.js'
import { type Answer, type Ask, answerProblem } from '../http/exchange.js'
import { nameHeaders, readHeader } from '../http/headers.js'
import { createRelayFinder } from '../http/relay.js'
import { createRouter, noControl } from '../http/router.js'
import { DEFAULT_BODY_LIMIT_BYTES } from '../http/sockets.js'
import type { CreateAnswerer } from '../http/start.js'
import { registry } from '../operations/all.js'
import { inspectLink } from '../operations/invite/accept-invitation.js'
import { DASHBOARD_PATH, type Dashboard } from './dashboard.js'
import { watchDestination } from './destination.js'
import { isDirect, isLoopback, isOwnOrigin } from './local.js'
import type { Plane } from './plane.js'
import { redactBody } from './requests.js'

export interface MiddlewareOptions {
  plane: Plane
  /** The key of the control plane, if requests can reach that. */
  key?: string | undefined
  dashboard?: Dashboard | undefined
  prefix: string
}

/** What is noted of a request on its way. */
interface Sighting {
  entry?: AccessEntry
  decisions: Map<string, ExplainedDecision>
}

/** The decisions that are kept of a request. */
const MOST_DECISIONS = 20

const FAULT_DETAIL = 'This fault was asked for with the control plane.'
const FORK_PATH = new RegExp(`^${CONTROL_PATH}/forks/([^/]+)(/.+)$`)

export function createControlMiddleware(options: MiddlewareOptions): (create: CreateAnswerer) => Answerer {
  const { plane: base, key, dashboard, prefix } = options
  return (create) => {
    const names = nameHeaders(prefix)
    const answerers = new WeakMap<Plane, { api: Answerer; control: Answerer }>()
    const sightings = new WeakMap<Ask, Sighting>()
    const router = createRouter(registry)
    const findRelay = createRelayFinder(registry)
    const answererOf = (plane: Plane) => {
      const known = answerers.get(plane)
      if (known !== undefined) return known
      const host = plane.app
      const api = create({
        host,
        observe: (entry, ask) => {
          const sighting = sightings.get(ask)
          if (sighting !== undefined) sighting.entry = entry
        },
        authenticate: async (_, given, { ask, allowsCached }) => {
          const caller = await authenticate(host, given, { allowsCached })
          const sighting = sightings.get(ask)
          return sighting === undefined ? caller : noteDecisions(caller, sighting.decisions, MOST_DECISIONS)
        },
      })
      const control = create({
        host,
        registry: { ...registry, routed: registry.controls },
        authenticate: async (_, given) => {
          if (key === undefined || !host.isEqualSecret(given, key))
            throw new CofferError(
              'unauthenticated',
              'This is not the control key, which coffer serve prints.',
            )
          return host.owner({ reveal: false })
        },
        cors: false,
        rate: undefined,
      })
      const made = { api, control }
      answerers.set(plane, made)
      return made
    }
    const live =
      dashboard &&
      create({
        host: base.app,
        registry: { ...registry, operations: [], routed: [] },
        ...dashboard.handlers,
        cors: false,
        record: undefined,
      })
    const fail = (error: CofferError, ask: Ask): Answer => {
      const traceId = base.app.createUuid()
      const answer = answerProblem(error, traceId, readHeader(ask.headers, 'accept'))
      answer.headers[names.traceId] = traceId
      return answer
    }

    const control = async (ask: Ask, path: string): Promise<Answer> => {
      if (!isLoopback(ask) || !isDirect(ask)) return fail(noControl(), ask)
      if (!isOwnOrigin(ask))
        return fail(
          new CofferError('forbidden', 'Pages of other origins may not use the control plane.'),
          ask,
        )
      const [, id, rest] = FORK_PATH.exec(path) ?? []
      if (id === undefined || rest === undefined) return answererOf(base).control(ask)
      const fork = base.forks.get(id)
      if (fork === undefined) return fail(new CofferError('not_found', 'There is no fork with this id.'), ask)
      const target = `${CONTROL_PATH}${rest}${ask.target.slice(ask.target.indexOf(path) + path.length)}`
      return answererOf(fork.plane).control({ ...ask, target })
    }

    const find = async (ask: Ask, path: string, search: string): Promise<Plane> => {
      if (path === ACCEPT_PATH) return findByLink(base, new URLSearchParams(search).get('token') ?? '')
      const given = readHeader(ask.headers, names.apiKey)
      if (base.forks.size === 0 || given === undefined) return base
      for (const { plane } of base.forks.values()) {
        try {
          await authenticate(plane.app, given)
          return plane
        } catch (error) {
          if (!(error instanceof CofferError) || error.code !== 'unauthenticated') throw error
        }
      }
      return base
    }

    const serve = async (asked: Ask, path: string, search: string): Promise<Answer> => {
      const plane = await find(asked, path, search)
      const { app } = plane
      // Nobody can see a record of it.
      if (plane.app.control === undefined && dashboard?.isWatched() !== true)
        return answererOf(plane).api(asked)
      const started = performance.now()
      let sent: Promise<Uint8Array | undefined> | undefined
      const readBody = (limitBytes: number) => (sent ??= asked.readBody(limitBytes))
      const relayed = findRelay(path)
      const operation = relayed?.operation ?? findOperation(router, asked.method, path)
      const rules = await plane.faults.choose({
        operation: operation?.name,
        method: asked.method,
        path,
        isRelayed: relayed !== undefined,
        header: (name) => readHeader(asked.headers, name),
        body: async () => parseJsonOrNothing(await textOf(readBody(DEFAULT_BODY_LIMIT_BYTES))),
      })
      const destination: Pick<RequestRecord, 'destination' | 'destination_status'> = {}
      const { destination: fault } = rules.find(({ kind }) => kind === 'destination') ?? {}
      const watching = relayed && { through: watchDestination(fault, destination) }
      const ask = { ...asked, ...watching, readBody }
      const sighting: Sighting = { decisions: new Map() }
      sightings.set(ask, sighting)
      let { generation } = app
      for (const { kind, delay_ms = 0 } of rules) if (kind === 'delay') await setTimeout(delay_ms)
      const isStale = () => app.generation !== generation
      // It was asked of data that is gone: neither its answer nor a record of it comes after a reset.
      if (isStale()) return fail(staleWorkError(), ask)
      const rule = rules.find(({ kind }) => kind !== 'delay' && kind !== 'destination')
      let answer: Answer
      if (rule?.kind === 'status') answer = fail(problemOf(rule), ask)
      else if (rule?.kind === 'drop') answer = { ...fail(problemOf({ status: 503 }), ask), cutAt: 'start' }
      else
        answer = await plane.lock.shared(async () => {
          generation = app.generation
          const answered = await answererOf(plane).api(ask)
          if (!isStale()) return answered
          // Only the deletion of a fork does not wait for the request.
          await answered.stream?.[Symbol.asyncIterator]().return?.()
          return fail(staleWorkError(), ask)
        })
      if (rule?.kind === 'status') {
        titleByStatus(answer)
        if (rule.retry_after !== undefined) answer.headers['retry-after'] = String(rule.retry_after)
      }
      if (rule?.kind === 'lose') {
        await answer.stream?.[Symbol.asyncIterator]().return?.()
        answer.cutAt = 'start'
      }
      if (rule?.kind === 'cut' && answer.stream !== undefined)
        answer.stream = cutStream(answer.stream, rule.bytes ?? 0)
      else if (rule?.kind === 'cut')
        answer.cutAt = rule.bytes ?? Math.floor((answer.bytes ?? answer.body).length / 2)
      const { entry, decisions } = sighting
      const query = queryNames(search, operation)
      const shown = answer.more === undefined ? answer.body : ''
      const isProblem =
        answer.headers['content-type']?.includes('problem') === true && operation?.noun !== 'proxy'
      plane.requests.add({
        method: ask.method,
        path,
        status: answer.cutAt === 'start' ? 0 : answer.status,
        trace_id: answer.headers[names.traceId] ?? '',
        at: formatDate(plane.now()),
        ms: Math.round((performance.now() - started) * 100) / 100,
        ...destination,
        ...omitUndefined({
          operation: operation?.name,
          application_id: entry?.applicationId,
          query: query.length === 0 ? undefined : query,
          fault: rules.at(-1)?.kind,
          request: redactBody(await textOf(sent), knownOf(operation, 'input')),
          decisions: decisions.size === 0 ? undefined : [...decisions.values()],
          answer: redactBody(shown, knownOf(operation, 'output'), isProblem),
        }),
      })
      return answer
    }

    return async (ask) => {
      const { path, search } = splitTarget(ask.target)
      if (key !== undefined && isBelow(path, CONTROL_PATH)) return control(ask, path)
      if (live !== undefined && isBelow(path, DASHBOARD_PATH)) return live(ask)
      return serve(ask, path, search)
    }
  }
}

/** The vault that knows the link, of `base` and its forks. */
async function findByLink(base: Plane, secret: string): Promise<Plane> {
  for (const plane of [base, ...[...base.forks.values()].map((fork) => fork.plane)]) {
    const found = await inspectLink(plane.app, secret)
    if (!('reason' in found && found.reason === 'unknown')) return plane
  }
  return base
}

async function* cutStream(stream: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let left = bytes
  for await (const chunk of stream) {
    yield chunk.subarray(0, left)
    left -= chunk.length
    if (left <= 0) throw new Error('The answer is cut, as the control plane was asked to do.')
  }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

/** Only names that the operation has, because others could be anything. */
function queryNames(search: string, operation: RegisteredOperation | undefined): string[] {
  const names = new Set(new URLSearchParams(search).keys())
  return Object.keys(operation?.endpoint?.query ?? {}).filter((name) => names.has(name))
}

function findOperation(router: ReturnType<typeof createRouter>, method: string, path: string) {
  try {
    const match = router.match(method, path)
    return 'operation' in match ? match.operation : undefined
  } catch {
    // The answer says what is wrong with the path.
    return undefined
  }
}

/** The names of the properties that a body of the operation has; undefined where it may be any JSON. */
function knownOf(operation: RegisteredOperation | undefined, side: 'input' | 'output'): string[] | undefined {
  const isOpen = operation?.wholeBody !== undefined || ['reactor', 'proxy'].includes(operation?.noun ?? '')
  const schema = operation?.[side]
  return isOpen || schema?.type !== 'object' ? undefined : Object.keys(schema.properties ?? {})
}

/** Of a body that does not arrive, nothing: who needs it answers the error. */
async function textOf(body: Promise<Uint8Array | undefined> | undefined): Promise<string> {
  return Buffer.from((await body?.catch(() => undefined)) ?? []).toString('utf8')
}

/** Errors that only commands have, or that say more than their status. */
const NOT_OF_STATUS: readonly string[] = ['usage', 'check_failed']

/** Our error with this status, if there is one. */
function codeOfStatus(status: number): ErrorCode | undefined {
  const codes = Object.keys(ERRORS) as ErrorCode[]
  return codes.find((code) => ERRORS[code].status === status && !NOT_OF_STATUS.includes(code))
}

function problemOf({
  status = 500,
  detail = FAULT_DETAIL,
}: Pick<FaultRule, 'status' | 'detail'>): CofferError {
  return new CofferError(codeOfStatus(status) ?? 'internal', detail, { status })
}

/** Gives the problem the title of a status that none of our errors has (RFC 7807, 4.2). */
function titleByStatus(answer: Answer): void {
  if (codeOfStatus(answer.status) !== undefined) return
  const title = STATUS_CODES[answer.status] ?? 'Unknown Status'
  answer.body = JSON.stringify({ ...JSON.parse(answer.body), type: 'about:blank', title })
}
