/** The control plane as operations: state, clock, requests and mail of a vault that tests use. */
import { parseDuration, parseLogDate } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { CofferError, invalid } from '../../errors.js'
import { operation } from '../../framework/operation.js'
import { anyJson, arrayOf, object, text, texts } from '../../framework/output.js'
import { CLOCK_MODES, clockOutput, forkOutput, requestOutput } from '../../framework/ports/control.js'
import { closedInput, type Infer } from '../../framework/schema.js'
import { readOutbox } from '../invite/outbox.js'
import { countReveals as reveals, revealsInput, revealsOutput } from '../log/log.js'
import { controlled, nothing } from './controlled.js'

const LONGEST_WAIT_MS = 60_000
const MOST_LISTED = 1000
const snapshot = closedInput(['name'], {
  name: { type: 'string', minLength: 1, maxLength: 100, description: 'The name of the snapshot.' },
})

export const reset = controlled({
  name: 'control reset',
  control: 'POST /reset',
  summary: 'Return to the state in which the vault began: data, clock, faults and requests.',
  ask: (control) => control.reset(),
})

export const saveSnapshot = controlled({
  name: 'control snapshot create',
  control: 'POST /snapshots',
  summary: 'Keep the present data under a name, in memory.',
  positionals: ['name'],
  input: snapshot,
  example: 'with-cards',
  ask: (control, { name }) => control.saveSnapshot(name),
})

export const listSnapshots = controlled({
  name: 'control snapshot list',
  control: 'GET /snapshots',
  summary: 'List the names of the snapshots.',
  output: texts,
  ask: (control) => control.listSnapshots(),
})

export const restoreSnapshot = controlled({
  name: 'control snapshot restore',
  control: 'POST /snapshots/{name}/restore',
  summary: 'Return to the data of a snapshot.',
  input: snapshot,
  example: 'with-cards',
  ask: (control, { name }) => control.restoreSnapshot(name),
})

export const deleteSnapshot = controlled({
  name: 'control snapshot delete',
  control: 'DELETE /snapshots/{name}',
  summary: 'Delete a snapshot.',
  input: snapshot,
  example: 'with-cards',
  ask: (control, { name }) => control.deleteSnapshot(name),
})

export const createFork = controlled({
  name: 'control fork create',
  control: 'POST /forks',
  summary: 'Begin a tenant of its own with the data that the vault began with, for a parallel test worker.',
  details:
    'The fork has its own tenant id, API keys, log, clock, faults and requests; the server knows it by its keys. Its\ncontrol plane is at /_coffer/forks/ID/. Fingerprints are equal to those of the other forks.',
  output: forkOutput,
  ask: (control) => control.fork(),
})

export const listForks = controlled({
  name: 'control fork list',
  control: 'GET /forks',
  summary: 'List the forks, with their keys.',
  output: arrayOf(forkOutput),
  ask: (control) => control.listForks(),
})

export const deleteFork = controlled({
  name: 'control fork delete',
  control: 'DELETE /forks/{id}',
  summary: 'Delete a fork.',
  input: closedInput(['id'], { id: { type: 'string', description: 'The id of the fork.' } }),
  example: '9a1f…',
  ask: (control, { id }) => control.deleteFork(id),
})

export const readClock = controlled({
  name: 'control clock get',
  control: 'GET /clock',
  summary: 'Show the clock of the vault.',
  output: clockOutput,
  ask: (control) => control.readClock(),
})

const DUE =
  'What is due by then is done before the answer: expired tokens are purged, and mail is tried again.'

export const setClock = controlled({
  name: 'control clock set',
  control: 'PUT /clock',
  summary: 'Set the clock: the real one, one that runs from another time, or one that stands still.',
  details: DUE,
  input: closedInput(['mode'], {
    mode: { type: 'string', enum: CLOCK_MODES, description: `One of ${CLOCK_MODES.join(', ')}.` },
    at: { type: 'string', description: 'The time, ISO 8601; default: the present one.' },
  }),
  output: clockOutput,
  example: '--mode frozen --at 2030-01-01T00:00:00Z',
  check: ({ at }) => (at === undefined ? undefined : readTime(at)),
  ask: (control, { mode }, at) => control.setClock(mode, at),
})

export const advanceClock = controlled({
  name: 'control clock advance',
  control: 'POST /clock/advance',
  summary: 'Move the clock forward.',
  details: DUE,
  input: closedInput(['by'], { by: { type: 'string', description: 'Such as 90s, 15m, 72h, 30d or 2w.' } }),
  output: clockOutput,
  example: '--by 72h',
  check: ({ by }) => readDuration('by', by ?? ''),
  ask: (control, _, ms) => control.advanceClock(ms),
})

export const listRequests = controlled({
  name: 'control request list',
  control: 'GET /requests',
  summary:
    'List the last 1,000 requests, oldest first, without their data; waits for some with --count and --wait.',
  input: closedInput([], {
    operation: { type: 'string', description: 'Only of this operation, such as token create.' },
    method: { type: 'string', description: 'Only with this method.' },
    status: { type: 'integer', description: 'Only answered with this status; 0 for a dropped connection.' },
    application_id: { type: 'string', description: 'Only of this application.' },
    count: { type: 'integer', minimum: 1, maximum: MOST_LISTED, description: 'Wait until so many match.' },
    timeout: {
      type: 'string',
      flag: 'wait',
      description: 'How long, such as 300ms or 2s; at most 1m. Default 2s. Then those that there are.',
    },
  }),
  output: arrayOf(requestOutput),
  columns: ['at', 'method', 'path', 'operation', 'status', 'ms'],
  example: '--operation "token create" --count 2 --wait 2s',
  check: ({ timeout }) => Math.min(LONGEST_WAIT_MS, readDuration('timeout', timeout ?? '2s')),
  ask: (control, { count: wanted, timeout: _, ...filter }, timeoutMs) =>
    control.findRequests(omitUndefined(filter), wanted ?? 0, timeoutMs),
})

export const clearRequests = controlled({
  name: 'control request clear',
  control: 'DELETE /requests',
  summary: 'Forget the requests so far.',
  ask: (control) => control.clearRequests(),
})

export const openPage = operation({
  name: 'control page',
  audience: 'owner',
  control: 'POST /page',
  summary: 'Get an address of the page of the server that signs in, once and within two minutes.',
  details:
    'Of the server that has the vault open, with or without a control plane, or of the one at --url, with its control key.',
  input: nothing,
  output: object({ url: text }),
  examples: ['coffer control page --url http://localhost:4010'],
  runDetached: async (session) => {
    const create = session.vault().createPageUrl
    if (create !== undefined) return { url: create() }
    throw new CofferError(
      'not_found',
      'No server that is for this machine alone has this vault open: coffer serve',
    )
  },
})

export const countReveals = operation({
  name: 'control reveals',
  audience: 'owner',
  control: 'GET /reveals',
  summary:
    'Count how often the data of a token was given in the clear, and to whom, as coffer log reveals does.',
  input: revealsInput,
  output: revealsOutput,
  examples: ['coffer control reveals --token card-1 --url http://localhost:4010'],
  runDetached: (session, input) => {
    session.control()
    return session.perform(session.caller, reveals, { ...input }) as Promise<Infer<typeof revealsOutput>>
  },
})

export const listOutbox = operation({
  name: 'control outbox',
  audience: 'owner',
  control: 'GET /outbox',
  summary: 'List the mails of invitations, or get one with its link.',
  input: closedInput([], { id: { type: 'string', description: 'The id of a mail.' } }),
  output: anyJson('A page of mails, or one mail with its text.'),
  examples: ['coffer control outbox --url http://localhost:4010'],
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
  const [, digits] = /^(\d{1,6})ms$/.exec(text) ?? []
  const ms = digits === undefined ? parseDuration(text) : Number(digits)
  if (ms === undefined) throw invalid(property, 'must be a duration such as 300ms, 90s, 15m, 72h, 30d or 2w')
  return ms
}
