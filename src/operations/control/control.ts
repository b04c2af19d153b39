/** The control plane as operations: state, clock, requests and mail of a vault that tests use. */
import { parseDuration, parseLogDate } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { invalid } from '../../errors.js'
import { operation } from '../../framework/operation.js'
import {
  anyJson,
  arrayOf,
  count,
  date,
  enumOf,
  object,
  text,
  textMap,
  texts,
  uuid,
} from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { readOutbox } from '../invite/outbox.js'

const LONGEST_WAIT_MS = 60_000
const MOST_LISTED = 1000
const MODES = ['real', 'offset', 'frozen'] as const
const nothing = closedInput([], {})
const name = {
  type: 'string',
  minLength: 1,
  maxLength: 100,
  description: 'The name of the snapshot.',
} as const
const snapshot = { audience: 'owner', input: closedInput(['name'], { name }) } as const
const example = (command: string) => [`coffer ${command} --url http://localhost:4010`]

export const reset = operation({
  name: 'control reset',
  audience: 'owner',
  control: 'POST /reset',
  summary: 'Return to the state in which the vault began: data, clock, faults and requests.',
  input: nothing,
  examples: example('control reset'),
  runDetached: (session) =>
    session
      .control()
      .reset()
      .then(() => undefined),
})

export const saveSnapshot = operation({
  ...snapshot,
  name: 'control snapshot create',
  control: 'POST /snapshots',
  summary: 'Keep the present data under a name, in memory.',
  positionals: ['name'],
  examples: example('control snapshot create with-cards'),
  runDetached: (session, input) =>
    session
      .control()
      .saveSnapshot(input.name)
      .then(() => undefined),
})

export const listSnapshots = operation({
  name: 'control snapshot list',
  audience: 'owner',
  control: 'GET /snapshots',
  summary: 'List the names of the snapshots.',
  input: nothing,
  output: texts,
  examples: example('control snapshot list'),
  runDetached: async (session) => session.control().listSnapshots(),
})

export const restoreSnapshot = operation({
  ...snapshot,
  name: 'control snapshot restore',
  control: 'POST /snapshots/{name}/restore',
  summary: 'Return to the data of a snapshot.',
  examples: example('control snapshot restore with-cards'),
  runDetached: (session, input) =>
    session
      .control()
      .restoreSnapshot(input.name)
      .then(() => undefined),
})

export const deleteSnapshot = operation({
  ...snapshot,
  name: 'control snapshot delete',
  control: 'DELETE /snapshots/{name}',
  summary: 'Delete a snapshot.',
  examples: example('control snapshot delete with-cards'),
  runDetached: async (session, input) => void session.control().deleteSnapshot(input.name) as undefined,
})

const forkOutput = object({ id: uuid, tenant: object({ id: uuid, name: text }), keys: textMap })

export const createFork = operation({
  name: 'control fork create',
  audience: 'owner',
  control: 'POST /forks',
  summary: 'Begin a tenant of its own with the data that the vault began with, for a parallel test worker.',
  details:
    'The fork has its own tenant id, API keys, log, clock, faults and requests; the server knows it by its keys. Its\ncontrol plane is at /_coffer/forks/ID/. Fingerprints are equal to those of the other forks.',
  input: nothing,
  output: forkOutput,
  examples: example('control fork create'),
  runDetached: (session) => session.control().fork(),
})

export const listForks = operation({
  name: 'control fork list',
  audience: 'owner',
  control: 'GET /forks',
  summary: 'List the forks, with their keys.',
  input: nothing,
  output: arrayOf(forkOutput),
  examples: example('control fork list'),
  runDetached: async (session) => session.control().listForks(),
})

export const deleteFork = operation({
  name: 'control fork delete',
  audience: 'owner',
  control: 'DELETE /forks/{id}',
  summary: 'Delete a fork.',
  input: closedInput(['id'], { id: { type: 'string', description: 'The id of the fork.' } }),
  examples: example('control fork delete 9a1f…'),
  runDetached: (session, input) =>
    session
      .control()
      .deleteFork(input.id)
      .then(() => undefined),
})

const clockOutput = object({ mode: enumOf(...MODES), now: date, offset_ms: { type: 'integer' } })

export const readClock = operation({
  name: 'control clock get',
  audience: 'owner',
  control: 'GET /clock',
  summary: 'Show the clock of the vault.',
  input: nothing,
  output: clockOutput,
  examples: example('control clock get'),
  runDetached: async (session) => session.control().readClock(),
})

export const setClock = operation({
  name: 'control clock set',
  audience: 'owner',
  control: 'PUT /clock',
  summary: 'Set the clock: the real one, one that runs from another time, or one that stands still.',
  details: 'What is due by then is done before the answer: expired tokens are purged.',
  input: closedInput(['mode'], {
    mode: { type: 'string', enum: MODES, description: `One of ${MODES.join(', ')}.` },
    at: { type: 'string', description: 'The time, ISO 8601; default: the present one.' },
  }),
  output: clockOutput,
  examples: example('control clock set --mode frozen --at 2030-01-01T00:00:00Z'),
  check: ({ at }) => (at === undefined ? undefined : readTime(at)),
  runDetached: (session, { mode }, at) => session.control().setClock(mode, at),
})

export const advanceClock = operation({
  name: 'control clock advance',
  audience: 'owner',
  control: 'POST /clock/advance',
  summary: 'Move the clock forward.',
  details: 'What is due by then is done before the answer: expired tokens are purged.',
  input: closedInput(['by'], { by: { type: 'string', description: 'Such as 90s, 15m, 72h, 30d or 2w.' } }),
  output: clockOutput,
  examples: example('control clock advance --by 72h'),
  check: ({ by }) => readDuration('by', by ?? ''),
  runDetached: (session, _, ms) => session.control().advanceClock(ms),
})

export const listRequests = operation({
  name: 'control request list',
  audience: 'owner',
  control: 'GET /requests',
  summary:
    'List the last 1,000 requests, oldest first, without their data; waits for some with --count and --wait.',
  input: closedInput([], {
    operation: { type: 'string', description: 'Only of this operation, such as token create.' },
    method: { type: 'string', description: 'Only with this method.' },
    status: { type: 'integer', description: 'Only answered with this status; 0 for a dropped connection.' },
    application_id: { type: 'string', description: 'Only of this application.' },
    count: { type: 'integer', minimum: 1, maximum: MOST_LISTED, description: 'Wait until so many match.' },
    timeout: { type: 'string', flag: 'wait', description: 'How long, such as 2s; at most 1m. Default 2s.' },
  }),
  output: arrayOf(
    object({
      method: text,
      path: text,
      'operation?': text,
      status: count,
      'application_id?': text,
      trace_id: text,
      at: date,
      ms: { type: 'number' },
      'query?': texts,
      'fault?': text,
      'destination?': text,
      'destination_status?': count,
      'request?': anyJson('The body without its data.'),
      'answer?': anyJson('The body without its data.'),
      'decisions?': anyJson('Which access rules decided, as --explain shows it.'),
    }),
  ),
  columns: ['at', 'method', 'path', 'operation', 'status', 'ms'],
  examples: example('control request list --operation "token create" --count 2 --wait 2s'),
  check: ({ timeout }) => Math.min(LONGEST_WAIT_MS, readDuration('timeout', timeout ?? '2s')),
  runDetached: (session, { count: wanted, timeout: _, ...filter }, timeoutMs) =>
    session.control().findRequests(omitUndefined(filter), wanted ?? 0, timeoutMs),
})

export const clearRequests = operation({
  name: 'control request clear',
  audience: 'owner',
  control: 'DELETE /requests',
  summary: 'Forget the requests so far.',
  input: nothing,
  examples: example('control request clear'),
  runDetached: async (session) => void session.control().clearRequests() as undefined,
})

export const openPage = operation({
  name: 'control page',
  audience: 'owner',
  control: 'POST /page',
  summary: 'Get an address of the page of the server that signs in, once and within two minutes.',
  input: nothing,
  output: object({ url: text }),
  examples: example('control page'),
  runDetached: async (session) => ({ url: session.control().openPage() }),
})

export const listOutbox = operation({
  name: 'control outbox',
  audience: 'owner',
  control: 'GET /outbox',
  summary: 'List the mails of invitations, or get one with its link.',
  input: closedInput([], { id: { type: 'string', description: 'The id of a mail.' } }),
  output: anyJson('A page of mails, or one mail with its text.'),
  examples: example('control outbox'),
  runDetached: (session, input) => {
    session.control()
    return session.perform(session.caller, readOutbox, { ...input })
  },
})

function readTime(text: string): number {
  try {
    return parseLogDate(text)
  } catch {
    throw invalid('at', 'must be a date of ISO 8601, such as 2030-01-01T00:00:00Z')
  }
}

function readDuration(property: string, text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw invalid(property, 'must be a duration such as 90s, 15m, 72h, 30d or 2w')
  return ms
}
