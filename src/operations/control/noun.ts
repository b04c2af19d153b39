import { parseLogDate } from '../../domain/dates.js'
import { isObject } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { about } from '../../domain/property-errors.js'
import { DESTINATION_FAULT_RULE, readDestinationFault } from '../../domain/proxy/destination-fault.js'
import { CofferError, invalid } from '../../errors.js'
import type { Session } from '../../framework/context.js'
import { type AnyOperation, detached } from '../../framework/operation.js'
import { anyJson, arrayOf, object, text, texts } from '../../framework/output.js'
import type { List } from '../../framework/page.js'
import * as port from '../../framework/ports/control.js'
import { closedInput, type Infer, nameOf } from '../../framework/schema.js'
import { decideInput, decideSession } from '../3ds/decide.js'
import { CHALLENGED } from '../3ds/examples.js'
import { sessionOutput } from '../3ds/outputs.js'
import { readOutbox } from '../invite/noun.js'
import { countReveals, REVEALS, revealsInput, revealsOutput } from '../log/noun.js'
import { networkTokenId, networkTokenOutput, STATUSES } from '../network-token/attributes.js'
import { CREATE_EXAMPLE } from '../network-token/examples.js'
import { deliveryFilters, deliveryOutput, listDeliveries } from '../webhook/delivery.js'
import { checkTrigger, triggerEvent, triggerInput, triggerOutput } from '../webhook/trigger.js'
import { on, readDuration, readTimeout } from './declare.js'
import { listenerOperations } from './listener.js'

const MAX_DELIVERIES = 100
type Delivery = Infer<typeof deliveryOutput>

const DUE = 'Before it answers, the server purges expired tokens and retries mail that is due.'

const faultsOutput = arrayOf(
  anyJson('A rule. matched: how many requests match it. applied: how many requests had its fault.'),
)

function onSnapshot<const Name extends string>(name: Name, route: string) {
  const input = closedInput(['name'], { name: nameOf('The name of the snapshot.', 100) })
  return { ...on(name, route, 'with-cards'), input }
}

function performControlled(session: Session, definition: AnyOperation, input: object): Promise<unknown> {
  session.control()
  return session.perform(session.caller, definition, { ...input })
}

export const noun = {
  name: 'control',
  summary: 'Control a test server: its state, clock and faults',
  groups: {
    snapshot: 'Save the data under a name, and restore it.',
    fork: 'Separate tenants for parallel test workers.',
    clock: 'Read and change the time of the vault.',
    fault: 'Make requests fail.',
    request: 'List requests, or wait for them.',
    '3ds': 'Decide challenges of 3-D Secure.',
    'network-token': 'Change network tokens as the network of the card.',
    listener: 'Take the events of a webhook.',
  },
  operations: [
    detached({
      ...on('reset', 'POST /reset'),
      summary: 'Reset the vault to its initial state: data, clock, faults and requests.',
      run: async (session) => void (await session.control().reset()),
    }),
    detached({
      ...onSnapshot('snapshot create', 'POST /snapshots'),
      summary: 'Save the current data under a name, in memory.',
      cli: { positionals: ['name'] },
      run: async (session, { name }) => void (await session.control().saveSnapshot(name)),
    }),
    detached({
      ...on('snapshot list', 'GET /snapshots'),
      summary: 'List the names of the snapshots.',
      output: texts,
      run: async (session) => session.control().listSnapshots(),
    }),
    detached({
      ...onSnapshot('snapshot restore', 'POST /snapshots/{name}/restore'),
      summary: 'Restore the data of a snapshot.',
      run: async (session, { name }) => void (await session.control().restoreSnapshot(name)),
    }),
    detached({
      ...onSnapshot('snapshot delete', 'DELETE /snapshots/{name}'),
      summary: 'Delete a snapshot.',
      run: async (session, { name }) => void (await session.control().deleteSnapshot(name)),
    }),
    detached({
      ...on('fork create', 'POST /forks'),
      plaintext: 'refused',
      summary: 'Create a tenant with the initial data of the vault, for a parallel test worker.',
      details:
        'The fork has its own tenant id, API keys, log, clock, faults and requests. The server recognizes the fork by its keys. The\ncontrol plane of the fork is at /_coffer/forks/ID/. All forks give equal fingerprints to equal data.',
      input: closedInput([], {
        name: nameOf('The name of the fork on the dashboard.', 100),
      }),
      output: port.forkOutput,
      run: async (session, { name }) => session.control().fork(name),
    }),
    detached({
      ...on('fork list', 'GET /forks'),
      plaintext: 'refused',
      summary: 'List the forks, with their keys.',
      output: arrayOf(port.forkOutput),
      run: async (session) => session.control().listForks(),
    }),
    detached({
      ...on('fork delete', 'DELETE /forks/{id}', '$(coffer control fork create --fields id -o value)'),
      summary: 'Delete a fork.',
      input: closedInput(['id'], { id: { type: 'string', description: 'The id of the fork.' } }),
      run: async (session, { id }) => void (await session.control().deleteFork(id)),
    }),
    detached({
      ...on('clock get', 'GET /clock'),
      summary: 'Show the clock of the vault.',
      output: port.clockOutput,
      run: async (session) => session.control().readClock(),
    }),
    detached({
      ...on('clock set', 'PUT /clock', '--mode frozen --at 2030-01-01T00:00:00Z'),
      summary: 'Set the clock to the real time, to another time from which it runs, or to a fixed time.',
      details: DUE,
      input: closedInput(['mode'], {
        mode: { type: 'string', enum: port.CLOCK_MODES, description: 'One of real, offset, frozen.' },
        at: { type: 'string', description: 'The time, ISO 8601; default: the present time.' },
      }),
      output: port.clockOutput,
      check: ({ at }) => (at === undefined ? undefined : about('at', () => parseLogDate(at))),
      run: async (session, { mode }, at) => session.control().setClock(mode, at),
    }),
    detached({
      ...on('clock advance', 'POST /clock/advance', '--by 72h'),
      summary: 'Move the clock forward.',
      details: DUE,
      input: closedInput(['by'], {
        by: { type: 'string', description: 'A duration, such as 90s, 15m, 72h or 2w.' },
      }),
      output: port.clockOutput,
      check: ({ by }) => readDuration('by', by ?? ''),
      run: async (session, _, ms) => session.control().advanceClock(ms),
    }),
    detached({
      ...on('fault list', 'GET /faults'),
      summary: 'List the rules by which requests fail, with counts.',
      output: faultsOutput,
      run: async (session) => session.control().listFaults(),
    }),
    detached({
      ...on(
        'fault set',
        'PUT /faults',
        `--rule '{"operation":"token create","kind":"status","status":503,"times":2}'`,
      ),
      summary: 'Replace the rules by which requests fail.',
      details:
        'A rule applies to requests with an operation, method, path (* matches any text), headers and properties of the body.\n' +
        'With `times` 2, a rule applies only to the first two requests; with `every` 3, to each third request. A rule has a\n' +
        'kind: status (with status, detail, retry_after), delay (delay_ms), drop (closes the connection before the work),\n' +
        'lose (closes it after the work), cut (ends the answer after `bytes`), provision (the code of a reactor or proxy is built\n' +
        'for delay_ms, and fails with error_code, error_message, error_details). Instead of a kind, `destination` says what the\n' +
        'destination of a call through a proxy does: timeout (408, immediately), a status such as 502, or a delay such as "30 s".',
      input: closedInput(['rules'], {
        rules: {
          type: 'array',
          items: port.faultRule,
          maxItems: 100,
          flag: 'rule',
          description: 'A rule, as JSON.',
        },
      }),
      output: faultsOutput,
      check: ({ rules = [] }) => {
        for (const [index, rule] of rules.entries()) checkRule(`rules[${index}]`, rule ?? {})
      },
      run: async (session, { rules }) => {
        const control = session.control()
        await control.setFaults(rules.map((rule) => ({ kind: 'destination', ...rule }) as port.FaultRule))
        return control.listFaults()
      },
    }),
    detached({
      ...on('fault clear', 'DELETE /faults'),
      summary: 'Remove the rules by which requests fail.',
      run: async (session) => void (await session.control().setFaults([])),
    }),
    detached({
      ...on('request list', 'GET /requests', '--operation "token create" --count 2 --wait 2s'),
      summary: 'List the last 1,000 requests, oldest first, without their data, or wait for requests.',
      input: closedInput([], {
        operation: { type: 'string', description: 'Only of this operation, such as token create.' },
        method: { type: 'string', description: 'Only with this method.' },
        status: { type: 'integer', description: 'Only with this status; 0 for a dropped connection.' },
        application_id: { type: 'string', description: 'Only of this application.' },
        ...waiting(1000),
      }),
      output: arrayOf(port.requestOutput),
      cli: { columns: ['at', 'method', 'path', 'operation', 'status', 'ms'] },
      check: readTimeout,
      run: async (session, { count: wanted, timeout: _, ...filter }, timeoutMs) =>
        session.control().findRequests(omitUndefined(filter), wanted ?? 0, timeoutMs),
    }),
    detached({
      ...on('not-emulated', 'GET /not-emulated'),
      summary: 'Count the requests that got 501, because their area is not emulated.',
      details:
        'In a path, {} replaces each part that may be an id. A server start, a reset or `control request clear` begins a new\n' +
        'count. A repeated request counts each time. A test suite can check that the list is empty.',
      output: arrayOf(port.notEmulatedOutput),
      cli: { columns: ['method', 'path', 'count', 'area'] },
      run: async (session) => session.control().listNotEmulated(),
    }),
    detached({
      ...on('request clear', 'DELETE /requests'),
      summary: 'Clear the list of requests.',
      run: async (session) => void (await session.control().clearRequests()),
    }),
    detached({
      ...on('outbox', 'GET /outbox'),
      summary: 'List the mails in the outbox, or get one mail with its text and link.',
      input: closedInput([], { id: { type: 'string', description: 'The id of a mail.' } }),
      output: anyJson('A page of mails, or one mail with its text.'),
      run: (session, input) => performControlled(session, readOutbox, input),
    }),
    detached({
      ...on('webhooks', 'GET /webhooks', '--event token.created --wait 2s'),
      summary:
        'Wait until an event was sent to a webhook, and list the last 100 events with payload and answer, oldest first.',
      details: 'Events that could not be sent are listed too.',
      input: closedInput([], { ...deliveryFilters, ...waiting(MAX_DELIVERIES) }),
      output: arrayOf(deliveryOutput),
      check: readTimeout,
      async run(session, { count: wanted = 1, timeout: _, ...filter }, timeoutMs) {
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
    detached({
      ...on('trigger', 'POST /webhooks/trigger'),
      ...{ summary: triggerEvent.summary, input: triggerInput, output: triggerOutput },
      cli: { positionals: ['event'] },
      examples: [
        'coffer webhook create --name 3ds --address https://example.com/3ds --event 3ds.session.created --quiet && ' +
          'coffer control trigger 3ds.session.created --set session.device=app',
      ],
      check: checkTrigger,
      run: async (session, input) =>
        (await performControlled(session, triggerEvent, input)) as Infer<typeof triggerOutput>,
    }),
    ...listenerOperations,
    detached({
      ...on('3ds decide', 'POST /3ds/{id}/complete', `${CHALLENGED} --outcome failed`),
      summary: 'Decide a pending challenge of 3-D Secure as the bank, without a browser.',
      input: decideInput,
      output: sessionOutput,
      run: async (session, input) =>
        (await performControlled(session, decideSession, input)) as Infer<typeof sessionOutput>,
    }),
    detached({
      ...on('network-token change', 'PUT /network-tokens/{id}', `${CREATE_EXAMPLE} --status inactive`),
      summary: 'Change the status of a network token as the network of the card.',
      details: 'In the log and in webhooks, the actor is the system.',
      input: closedInput(['id', 'status'], {
        id: networkTokenId,
        status: { type: 'string', enum: STATUSES, description: 'active, suspended or inactive.' },
      }),
      output: networkTokenOutput,
      run: async (session, { id, status }) => {
        session.control()
        const { changeByNetwork } = await import('../network-token/states.js')
        return session.inUnit((context) => changeByNetwork(context, id, status))
      },
    }),
    detached({
      ...on('reveals', 'GET /reveals', '--token card-1'),
      summary: REVEALS,
      input: revealsInput,
      output: revealsOutput,
      run: async (session, input) =>
        (await performControlled(session, countReveals, input)) as Infer<typeof revealsOutput>,
    }),
    detached({
      ...{ ...on('page', 'POST /page'), plaintext: 'refused' },
      summary: 'Get a sign-in link to the dashboard of the server, valid once for 2 minutes.',
      details: 'Uses the server that has the vault open, or the server at --url, with its control key.',
      output: object({ url: text }),
      run: async (session) => {
        const create = session.vault().createPageUrl
        if (create !== undefined) return { url: create() }
        throw new CofferError(
          'not_found',
          'No server on this machine has this vault open. Start one: coffer serve',
        )
      },
    }),
  ],
}

function waiting(maximum: number) {
  return {
    count: { type: 'integer', minimum: 1, maximum, description: 'Wait until this many match.' },
    timeout: {
      type: 'string',
      flag: 'wait',
      description:
        'How long to wait, such as 300ms or 2s; at most 1m, default 2s. Then the matches so far are listed.',
    },
  } as const
}

/** The limit of `error_details`. Each reactor or proxy that is built while the rule applies stores these details. */
const MAX_DETAILS_CHARACTERS = 16 * 1024

function checkRule(place: string, rule: Readonly<Record<string, unknown>>): void {
  const { kind, destination } = rule
  const needed = kind === 'status' ? 'status' : kind === 'delay' ? 'delay_ms' : undefined
  if (needed !== undefined && rule[needed] === undefined)
    throw invalid(`${place}.${needed}`, `is required for ${kind}`)
  if (kind === undefined && destination === undefined) throw invalid(`${place}.kind`, 'is required')
  if (kind !== undefined && (kind === 'destination') !== (destination !== undefined))
    throw invalid(`${place}.destination`, 'is required for the kind destination, and for no other')
  for (const name of ['error_code', 'error_message', 'error_details'])
    if (rule[name] !== undefined && kind !== 'provision')
      throw invalid(`${place}.${name}`, 'is only for the kind provision')
  const { error_code, error_details } = rule
  if (kind === 'provision' && rule.delay_ms === undefined && error_code === undefined)
    throw invalid(`${place}.delay_ms`, 'is required for provision, unless error_code is given')
  const isLarge = JSON.stringify(error_details ?? {}).length > MAX_DETAILS_CHARACTERS
  if (error_details !== undefined && (!isObject(error_details) || isLarge))
    throw invalid(
      `${place}.error_details`,
      `must be an object of at most ${MAX_DETAILS_CHARACTERS} characters of JSON`,
    )
  if (destination !== undefined && readDestinationFault(destination) === undefined)
    throw invalid(`${place}.destination`, DESTINATION_FAULT_RULE)
}
