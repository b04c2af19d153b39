import { parseDuration, parseLogDate } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { about } from '../../domain/property-errors.js'
import { DESTINATION_FAULT_RULE, readDestinationFault } from '../../domain/proxy/destination-fault.js'
import { CofferError, invalid } from '../../errors.js'
import { type AnyOperation, operation, type Session } from '../../framework/operation.js'
import { anyJson, arrayOf, object, text, texts } from '../../framework/output.js'
import type { List } from '../../framework/page.js'
import * as port from '../../framework/ports/control.js'
import { closedInput, type Infer, textOf } from '../../framework/schema.js'
import { readOutbox } from '../invite/noun.js'
import { countReveals, REVEALS, revealsInput, revealsOutput } from '../log/noun.js'
import { deliveryFilters, deliveryOutput, listDeliveries } from '../webhook/delivery.js'

const LONGEST_WAIT_MS = 60_000
const MAX_DELIVERIES = 100
type Delivery = Infer<typeof deliveryOutput>

/** Only a vault in memory has these, so their examples begin one. */
const NEEDS_MEMORY = /^(reset|snapshot|fork|clock)/
const DUE = 'Before the answer, expired tokens are purged, and mail that is due is tried again.'

const faultsOutput = arrayOf(
  anyJson('A rule, with matched and applied: how many requests it fits and applied to.'),
)

/** Declares what all control plane operations share. `route`: method, and path below that of the plane. */
function on<const Name extends string>(name: Name, route: string, example = '') {
  return {
    name: `control ${name}`,
    control: route,
    audience: 'owner',
    examples: [toExample(name, example)],
  } as const
}

function toExample(name: string, args: string): string {
  const command = `coffer control ${name} ${args}`.trimEnd()
  const before = name === 'snapshot restore' || name === 'snapshot delete' ? SNAPSHOT : ''
  return NEEDS_MEMORY.test(name) ? `coffer serve --ephemeral --run '${before}${command}'` : command
}

const SNAPSHOT = 'coffer control snapshot create with-cards && '

function onSnapshot<const Name extends string>(name: Name, route: string) {
  const input = closedInput(['name'], { name: textOf(100, 'The name of the snapshot.') })
  return { ...on(name, route, 'with-cards'), input }
}

function performControlled(session: Session, definition: AnyOperation, input: object): Promise<unknown> {
  session.control()
  return session.perform(session.caller, definition, { ...input })
}

export const noun = {
  name: 'control',
  summary: 'Control a server that tests use: its state, clock and faults',
  groups: {
    snapshot: 'Keep the data under a name, and return to it.',
    fork: 'Separate tenants for parallel test workers.',
    clock: 'The time by which things expire.',
    fault: 'Let requests fail.',
    request: 'See the requests, or wait for them.',
  },
  operations: [
    operation({
      ...on('reset', 'POST /reset'),
      summary: 'Return to the state in which the vault began: data, clock, faults and requests.',
      runDetached: async (session) => void (await session.control().reset()),
    }),
    operation({
      ...onSnapshot('snapshot create', 'POST /snapshots'),
      summary: 'Keep the present data under a name, in memory.',
      positionals: ['name'],
      runDetached: async (session, { name }) => void (await session.control().saveSnapshot(name)),
    }),
    operation({
      ...on('snapshot list', 'GET /snapshots'),
      summary: 'List the names of the snapshots.',
      output: texts,
      runDetached: async (session) => session.control().listSnapshots(),
    }),
    operation({
      ...onSnapshot('snapshot restore', 'POST /snapshots/{name}/restore'),
      summary: 'Return to the data of a snapshot.',
      runDetached: async (session, { name }) => void (await session.control().restoreSnapshot(name)),
    }),
    operation({
      ...onSnapshot('snapshot delete', 'DELETE /snapshots/{name}'),
      summary: 'Delete a snapshot.',
      runDetached: async (session, { name }) => void (await session.control().deleteSnapshot(name)),
    }),
    operation({
      ...on('fork create', 'POST /forks'),
      noReveal: 'refused',
      summary: 'Begin a tenant with the data that the vault began with, for a parallel test worker.',
      details:
        'The fork has its own tenant id, API keys, log, clock, faults and requests; the server knows it by its keys. Its\ncontrol plane is at /_coffer/forks/ID/. Fingerprints are equal to those of the other forks.',
      input: closedInput([], {
        name: { type: 'string', minLength: 1, maxLength: 100, description: 'Its name on the dashboard.' },
      }),
      output: port.forkOutput,
      runDetached: async (session, { name }) => session.control().fork(name),
    }),
    operation({
      ...on('fork list', 'GET /forks'),
      noReveal: 'refused',
      summary: 'List the forks, with their keys.',
      output: arrayOf(port.forkOutput),
      runDetached: async (session) => session.control().listForks(),
    }),
    operation({
      ...on('fork delete', 'DELETE /forks/{id}', '$(coffer control fork create --fields id -o value)'),
      summary: 'Delete a fork.',
      input: closedInput(['id'], { id: { type: 'string', description: 'The id of the fork.' } }),
      runDetached: async (session, { id }) => void (await session.control().deleteFork(id)),
    }),
    operation({
      ...on('clock get', 'GET /clock'),
      summary: 'Show the clock of the vault.',
      output: port.clockOutput,
      runDetached: async (session) => session.control().readClock(),
    }),
    operation({
      ...on('clock set', 'PUT /clock', '--mode frozen --at 2030-01-01T00:00:00Z'),
      summary: 'Set the clock: the real one, one that runs from another time, or one that stands still.',
      details: DUE,
      input: closedInput(['mode'], {
        mode: { type: 'string', enum: port.CLOCK_MODES, description: 'One of real, offset, frozen.' },
        at: { type: 'string', description: 'The time, ISO 8601; default: the present one.' },
      }),
      output: port.clockOutput,
      check: ({ at }) => (at === undefined ? undefined : about('at', () => parseLogDate(at))),
      runDetached: async (session, { mode }, at) => session.control().setClock(mode, at),
    }),
    operation({
      ...on('clock advance', 'POST /clock/advance', '--by 72h'),
      summary: 'Move the clock forward.',
      details: DUE,
      input: closedInput(['by'], { by: { type: 'string', description: 'Such as 90s, 15m, 72h or 2w.' } }),
      output: port.clockOutput,
      check: ({ by }) => readDuration('by', by ?? ''),
      runDetached: async (session, _, ms) => session.control().advanceClock(ms),
    }),
    operation({
      ...on('fault list', 'GET /faults'),
      summary: 'List the rules by which requests fail, with counts.',
      output: faultsOutput,
      runDetached: async (session) => session.control().listFaults(),
    }),
    operation({
      ...on(
        'fault set',
        'PUT /faults',
        `--rule '{"operation":"token create","kind":"status","status":503,"times":2}'`,
      ),
      summary: 'Replace the rules by which requests fail.',
      details:
        'A rule applies to an operation, method or path (* matches any text), headers and properties of the body, to the\n' +
        'first `times` requests or to `every` so many, and has a kind: status (with status, detail, retry_after), delay\n' +
        '(delay_ms), drop (the connection, before the work), cut (the answer, after `bytes`), lose (the connection,\n' +
        'after the work). Instead of a kind, `destination` says what the destination of a call through a proxy does: timeout\n' +
        '(408, at once), a status such as 502, or a time that it takes, such as "30 s".',
      input: closedInput(['rules'], {
        rules: { type: 'array', items: port.faultRule, maxItems: 100, flag: 'rule', description: 'As JSON.' },
      }),
      output: faultsOutput,
      check: ({ rules = [] }) => {
        for (const [index, rule] of rules.entries()) checkRule(`rules[${index}]`, rule ?? {})
      },
      runDetached: async (session, { rules }) => {
        const control = session.control()
        await control.setFaults(rules.map((rule) => ({ kind: 'destination', ...rule }) as port.FaultRule))
        return control.listFaults()
      },
    }),
    operation({
      ...on('fault clear', 'DELETE /faults'),
      summary: 'Remove the rules by which requests fail.',
      runDetached: async (session) => void (await session.control().setFaults([])),
    }),
    operation({
      ...on('request list', 'GET /requests', '--operation "token create" --count 2 --wait 2s'),
      summary: 'List the last 1,000 requests, oldest first, without their data, or wait for some.',
      input: closedInput([], {
        operation: { type: 'string', description: 'Only of this operation, such as token create.' },
        method: { type: 'string', description: 'Only with this method.' },
        status: { type: 'integer', description: 'Only with this status; 0 for a dropped connection.' },
        application_id: { type: 'string', description: 'Only of this application.' },
        ...waiting(1000),
      }),
      output: arrayOf(port.requestOutput),
      columns: ['at', 'method', 'path', 'operation', 'status', 'ms'],
      check: readTimeout,
      runDetached: async (session, { count: wanted, timeout: _, ...filter }, timeoutMs) =>
        session.control().findRequests(omitUndefined(filter), wanted ?? 0, timeoutMs),
    }),
    operation({
      ...on('not-emulated', 'GET /not-emulated'),
      summary: 'Count the requests for areas that are not emulated, which were answered 501.',
      details:
        'A part of a path that may be an id is {}. Counted since the start, a reset or `control request clear`, each attempt of\n' +
        'a client that repeats a request. A test suite may require that there are none.',
      output: arrayOf(port.notEmulatedOutput),
      columns: ['method', 'path', 'count', 'area'],
      runDetached: async (session) => session.control().listNotEmulated(),
    }),
    operation({
      ...on('request clear', 'DELETE /requests'),
      summary: 'Forget the requests so far.',
      runDetached: async (session) => void (await session.control().clearRequests()),
    }),
    operation({
      ...on('outbox', 'GET /outbox'),
      summary: 'List the mails of invitations, or get one with its link.',
      input: closedInput([], { id: { type: 'string', description: 'The id of a mail.' } }),
      output: anyJson('A page of mails, or one mail with its text.'),
      runDetached: (session, input) => performControlled(session, readOutbox, input),
    }),
    operation({
      ...on('webhooks', 'GET /webhooks', '--event token.created --wait 2s'),
      summary:
        'Wait until an event was sent to a webhook, and list the last 100 with payload and answer, oldest first.',
      details: 'Events that could not be sent are listed too.',
      input: closedInput([], { ...deliveryFilters, ...waiting(MAX_DELIVERIES) }),
      output: arrayOf(deliveryOutput),
      check: readTimeout,
      async runDetached(session, { count: wanted = 1, timeout: _, ...filter }, timeoutMs) {
        const input = { ...omitUndefined(filter), size: MAX_DELIVERIES }
        let found: Delivery[] = []
        const isEnough = async () => {
          const list = (await performControlled(session, listDeliveries, input)) as List<Delivery>
          found = list.data.filter(({ attempts, failure }) => attempts > 0 || failure !== undefined).reverse()
          return found.length >= wanted
        }
        await session.control().waitUntil(isEnough, timeoutMs)
        return found
      },
    }),
    operation({
      ...on('reveals', 'GET /reveals', '--token card-1'),
      summary: REVEALS,
      input: revealsInput,
      output: revealsOutput,
      runDetached: async (session, input) =>
        (await performControlled(session, countReveals, input)) as Infer<typeof revealsOutput>,
    }),
    operation({
      ...{ ...on('page', 'POST /page'), noReveal: 'refused' },
      summary: 'Get a sign-in link to the dashboard of the server, valid once for 2 minutes.',
      details: 'The server is the one that has the vault open, or the one at --url, with its control key.',
      output: object({ url: text }),
      runDetached: async (session) => {
        const create = session.vault().createPageUrl
        if (create !== undefined) return { url: create() }
        throw new CofferError('not_found', 'No server for this machine has this vault open: coffer serve')
      },
    }),
  ],
}

function waiting(maximum: number) {
  return {
    count: { type: 'integer', minimum: 1, maximum, description: 'Wait until so many match.' },
    timeout: {
      type: 'string',
      flag: 'wait',
      description: 'How long, such as 300ms or 2s; at most 1m. Default 2s. Then those that there are.',
    },
  } as const
}

function readTimeout({ timeout }: { timeout?: string | undefined }): number {
  return Math.min(LONGEST_WAIT_MS, readDuration('timeout', timeout ?? '2s'))
}

/** @throws CofferError `validation` for properties that are missing, or that do not belong together */
function checkRule(place: string, rule: Readonly<Record<string, unknown>>): void {
  const { kind, destination } = rule
  const needed = kind === 'status' ? 'status' : kind === 'delay' ? 'delay_ms' : undefined
  if (needed !== undefined && rule[needed] === undefined)
    throw invalid(`${place}.${needed}`, `is required for ${kind}`)
  if (kind === undefined && destination === undefined) throw invalid(`${place}.kind`, 'is required')
  if (kind !== undefined && (kind === 'destination') !== (destination !== undefined))
    throw invalid(`${place}.destination`, 'is required for the kind destination, and for no other')
  if (destination !== undefined && readDestinationFault(destination) === undefined)
    throw invalid(`${place}.destination`, DESTINATION_FAULT_RULE)
}

function readDuration(property: string, text: string): number {
  const [, digits] = /^(\d{1,6})ms$/.exec(text) ?? []
  const ms = digits === undefined ? parseDuration(text) : Number(digits)
  if (ms === undefined) throw invalid(property, 'must be a duration such as 300ms, 90s, 15m, 72h, 30d or 2w')
  return ms
}
