/**
 * The requests of the page: operations of the owner that reveal no data, dry runs, and requests with the grants of an
 * application.
 */
import { isContainerPath } from '../domain/access/container.js'
import { PERMISSIONS, type Permission, permissionsOf } from '../domain/access/permissions.js'
import { isObject } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import type { ReactorRunRecord } from '../domain/records/records.js'
import { settingOf } from '../domain/settings.js'
import { CofferError, invalid } from '../errors.js'
import { applicationCaller } from '../framework/caller/authenticate.js'
import { noRevealCaller } from '../framework/caller/caller.js'
import { type ExplainedDecision, recordDecisions } from '../framework/caller/decisions.js'
import { createUndoingStore } from '../framework/caller/explain.js'
import type { OperationInput } from '../framework/context.js'
import { perform } from '../framework/perform.js'
import type { RequestRecord } from '../framework/ports/control.js'
import { staleWorkError } from '../framework/unit.js'
import { ALL_METHODS, type HttpRequest } from '../http/exchange.js'
import type { HeaderNames } from '../http/headers.js'
import type { OperationName } from '../operations/all.js'
import { loadOperation } from '../operations/load.js'
import { readSettings } from '../operations/tenant/tenant-create.js'
import { VERSION } from '../version.js'
import type { ControlState } from './control-state.js'
import { FAULTS } from './page-faults.js'
import { hideInPath, hideValues, MANAGEMENT, type Performed, UNDONE } from './page-management.js'
import type { Place } from './place.js'

/**
 * The operations that the page may perform. Their answers contain no key, no setting of the vault, and no data that a
 * mask hides. This list prevents accidents, not attacks: a signed-in person can act as any application, and use the
 * rights of the application to change a mask.
 */
const PERFORMED: Performed = {
  ...MANAGEMENT,
  'token delete': {},
  'app list': UNDONE,
  'app permissions': UNDONE,
  'access matrix': { ...UNDONE, give: withoutExamples },
  'access preview': { ...UNDONE, give: withoutExamples },
  'app create': { take: (input) => ({ ...input, create_key: false }) },
  'app update': {},
  'app key delete': {},
  'reactor list': { ...UNDONE, give: (list) => ({ ...list, data: list.data.map(hideConfiguration) }) },
  'reactor create': { give: hideConfiguration },
  'reactor patch': {},
  'reactor delete': {},
  'reactor logs': { ...UNDONE, give: (runs) => runs.map(hideOutput) },
  'reactor scrubbed-logs': UNDONE,
  'log list': UNDONE,
  'log verify': {},
  '3ds decide': { give: ({ id }) => ({ id }) },
  'control reset': {},
  'control snapshot list': {},
  'control snapshot create': {},
  'control snapshot restore': {},
  'control snapshot delete': {},
  'control fork create': { give: ({ id }) => ({ id }) },
  'control fork delete': {},
  'control clock set': {},
  'control clock advance': {},
  ...FAULTS,
  'control fault clear': {},
  'control request clear': {},
}

/** The page shows only the examples of cells, so the examples of containers are removed. */
function withoutExamples<C extends { example?: unknown }, T extends { containers: C[] }>(answer: T) {
  return { ...answer, containers: answer.containers.map(({ example: _, ...container }) => container) }
}

type Shown = { configuration: object; requested?: unknown }

/**
 * The configuration of the requested version may contain secrets. The page does not show this version, so it is
 * removed.
 */
function hideConfiguration<T extends Shown>({ requested: _, ...reactor }: T): Omit<T, 'requested'> {
  return { ...reactor, configuration: hideValues(reactor.configuration) } as Omit<T, 'requested'>
}

function hideOutput({ console: _, stack: __, detail: ___, errors: ____, ...run }: Record<string, unknown>) {
  return run
}

function listPermissions(): Permission[] {
  const types = ['private', 'public', 'management'] as const
  const held = new Set(types.flatMap((type) => permissionsOf(type, { withEffect: true })))
  return (Object.keys(PERMISSIONS) as Permission[]).filter((name) => held.has(name))
}

export type PageSession = Awaited<ReturnType<typeof describeSession>>

/** `place`: the address of the vault. `header`: the name of the header that contains an API key. */
export async function describeSession(control: ControlState, header: string, place = 'in memory') {
  const { app, hasState, hasClock, seedName } = control
  const { result } = await app.ask({ operation: 'tenant list', input: {}, as: { reveal: false } })
  return {
    is_signed_in: true as const,
    ...{ version: VERSION, place, header, ...omitUndefined({ seed: seedName }) },
    permissions: listPermissions(),
    tenants: result.map(({ id, name }) => ({ id, name })),
    controls: { faults: app.control !== undefined, state: hasState, clock: hasClock },
  }
}

/**
 * Performs an operation as the owner, who sees masked data.
 * @throws CofferError `forbidden` for an operation that is not in `PERFORMED`
 */
export async function performForPage(place: Place, name: unknown, given: unknown) {
  const { control, tenant } = place
  const { app, lock } = control
  if (typeof name !== 'string' || !Object.hasOwn(PERFORMED, name) || !isObject(given))
    throw new CofferError('forbidden', 'The page does not perform this operation.')
  const { isUndone, take, give } = PERFORMED[name as OperationName] ?? {}
  const input = (await take?.(given, place)) ?? given
  const as = { reveal: false, tenant }
  const run = async () => {
    const definition = isUndone && (await loadOperation(name))
    if (definition === undefined) return app.ask({ operation: name as OperationName, input, as })
    return performUndone({ control, tenant }, definition, input)
  }
  // Operations of the control plane acquire the lock themselves, and would wait forever if this function held the lock
  // too.
  const { status, result } = await (name.startsWith('control ') ? run() : lock.shared(run))
  return { status, result: give === undefined ? result : await give(result as never, given, place) }
}

export async function performUndone(
  { control: { app }, tenant }: Place,
  definition: Parameters<typeof perform>[2],
  input: OperationInput,
) {
  const host = { ...app, store: createUndoingStore(app.store) }
  const owner = await app.owner({ reveal: false, tenant })
  const { values } = await app.store.read(readSettings)
  const caller = settingOf(values, 'no_reveal') ? noRevealCaller(owner) : owner
  return perform(host, caller, definition, input, app.createUuid())
}

const SHOWN = [
  'webhook',
  'delivery',
  'waiting_batch',
  'tenant',
  'token',
  'association',
  'application',
  'reactor',
  'reactor_log',
  'mail',
  'member',
  'invitation',
  'proxy',
  'threeds_session',
] as const

const MAX_NAMES = 1000
/** The page shows the outcome of runs for this many of the newest requests. */
const MAX_RUNS = 100

export type News = Awaited<ReturnType<typeof readNews>>

/**
 * `after`: the number of requests that the page has read. `known`: the version of the facts that the page has. If this
 * version is current, the result has no `facts`.
 */
export async function readNews(place: Place, base: ControlState, after: number, known: unknown) {
  const { control } = place
  const { app } = control
  const requests = control.requests.after(after)
  const version = `${app.generation}:${app.store.changeCounter(SHOWN) ?? `requests ${requests.count}`}`
  return {
    ...requests,
    records: requests.records.map(hideInPath),
    now: control.now(),
    ...(control.hasClock && { clock: control.readClock() }),
    faults: control.faults.rules.length,
    forks: [...base.forks.values()].map(({ fact, requests }) => ({
      id: fact.id,
      ...omitUndefined({ name: fact.name }),
      requests: requests.count,
    })),
    version,
    ...(known !== version && { facts: await control.lock.shared(() => readFacts(place)) }),
  }
}

export type Facts = Awaited<ReturnType<typeof readFacts>>

type Run = Pick<ReactorRunRecord, 'outcome' | 'status'>

/**
 * `actors`: names of members and applications by id. `applications`: oldest first. `runs`: outcomes of runs in the
 * background, by the trace id of the request.
 */
async function readFacts({ control: { app, requests }, tenant }: Place) {
  const { number, id, name } = await app.tenant(tenant)
  const owner = await app.owner({ reveal: false, tenant })
  return app.store.read(async (reader) => {
    const count = async (kind: 'token' | 'reactor' | 'proxy' | 'mail' | 'threeds_session') =>
      (await reader.find(kind, number, { page: 1, size: 1 })).total
    const all = { page: 1, size: MAX_NAMES }
    const { records: applications, total } = await reader.find('application', number, all)
    const { records: members } = await reader.find('member', number, all)
    const actors: Record<string, string> = { [owner.actor.id]: 'owner' }
    for (const { id, name } of applications) actors[id] = name
    for (const { user_id: id } of members)
      actors[id] ??= (await reader.get('user', 0, id))?.email ?? 'a member'
    const runs: Record<string, Run> = {}
    for (const trace of requests.accepted(MAX_RUNS)) {
      const where = { field: 'trace', value: trace }
      const [found] = (await reader.find('reactor_log', number, { where, page: 1, size: 1 })).records
      if (found !== undefined) runs[trace] = { outcome: found.outcome, status: found.status }
    }
    return {
      tenant: { id, name },
      runs,
      counts: {
        tokens: await count('token'),
        applications: total,
        reactors: await count('reactor'),
        proxies: await count('proxy'),
        '3ds': await count('threeds_session'),
        outbox: await count('mail'),
      },
      applications: applications.toReversed().map(({ id, name, type }) => ({ id, name, type })),
      actors,
    }
  })
}

export type Access = Awaited<ReturnType<typeof dryRun>>[number]

/**
 * Returns the access decision for the given application, or for all applications.
 * @throws CofferError `validation`, `not_found`
 */
export async function dryRun({ control: { app }, tenant }: Place, asked: Record<string, unknown>) {
  const { permission, target, application } = asked
  if (typeof permission !== 'string' || !Object.hasOwn(PERMISSIONS, permission))
    throw invalid('permission', 'is not the name of a permission')
  const { number } = await app.tenant(tenant)
  return app.store.read(async (reader) => {
    const record = typeof target === 'string' ? await reader.get('token', number, target) : undefined
    const token = record ?? { containers: [String(target)] }
    if (record === undefined && !isContainerPath(target))
      throw new CofferError(
        'not_found',
        'There is no token with this id. A container is a path such as /pci/high/.',
      )
    const { records } = await reader.find('application', number, { page: 1, size: MAX_NAMES })
    const chosen = records.filter(({ id }) => application === undefined || id === application)
    return chosen.map((record) => {
      const notes = new Map<string, ExplainedDecision>()
      const caller = recordDecisions(applicationCaller(number, record), notes)
      const transform = caller.transform(permission as Permission, token)
      return {
        application_id: record.id,
        ...omitUndefined({ transform }),
        decisions: [...notes.values()],
      }
    })
  })
}

/**
 * Answers a request in the vault of `control`, and records the request. If `application` is given, the grants of the
 * application decide, and no API key is needed.
 */
export type SendRequest = (
  control: ControlState,
  request: HttpRequest,
  application?: { id: string; tenant: number },
) => Promise<void>

const MAX_PROXY_HEADER = 2000

/** Reads `{ header, value }`: the header that names a proxy or a destination. @throws CofferError `validation` */
function readProxyHeader(proxy: unknown, { proxyKey, proxyUrl }: HeaderNames): Record<string, string> {
  if (proxy === undefined) return {}
  const { header, value } = isObject(proxy) ? proxy : {}
  const name = [proxyKey, proxyUrl].find((each) => each.toUpperCase() === header)
  if (name === undefined) throw invalid('proxy.header', `must be ${proxyKey} or ${proxyUrl}, in capitals`)
  if (typeof value !== 'string' || value.length > MAX_PROXY_HEADER || !/^[\x21-\x7e]+$/.test(value))
    throw invalid('proxy.value', `needs 1 to ${MAX_PROXY_HEADER} visible ASCII characters`)
  return { [name]: value }
}

/**
 * Returns the record of the request, which contains the answer without data.
 * @throws CofferError `validation`, `conflict` if the vault was reset in the meantime
 */
export async function sendForPage(
  { control, tenant }: Place,
  { method, target, type = 'application/json', body, application, key, proxy }: Record<string, unknown>,
  names: HeaderNames,
  send: SendRequest,
): Promise<RequestRecord> {
  if (typeof target !== 'string' || !/^\/(?!\/)[\x21-\x7e]*$/.test(target))
    throw invalid('target', 'must be a path, such as /tokens')
  if (!ALL_METHODS.split(', ').includes(String(method)))
    throw invalid('method', `must be one of ${ALL_METHODS}`)
  const traceId = control.app.createUuid()
  const bytes = Buffer.from(typeof body === 'string' ? body : '')
  const apiKey = key ?? application
  const headers = {
    [names.traceId]: traceId,
    ...(apiKey !== undefined && { [names.apiKey]: String(apiKey) }),
    ...readProxyHeader(proxy, names),
    ...(bytes.length > 0 && { 'content-type': String(type) }),
  }
  const readBody = async (limitBytes: number) => (bytes.length > limitBytes ? undefined : bytes)
  const { number } = await control.app.tenant(tenant)
  const as =
    typeof application === 'string' && key === undefined ? { id: application, tenant: number } : undefined
  await send(control, { method: String(method), target, headers, readBody }, as)
  const record = control.requests.findByTrace(traceId)
  if (record === undefined) throw staleWorkError()
  return hideInPath(record)
}
