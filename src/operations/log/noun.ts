import { parseLogDate } from '../../domain/dates.js'
import { type Lenient, omitUndefined } from '../../domain/omit-undefined.js'
import { collect, refuseErrors } from '../../domain/property-errors.js'
import { ENTITY_TYPES } from '../../domain/records/log-record.js'
import type { LogRecord } from '../../domain/records/records.js'
import type { PropertyErrors } from '../../errors.js'
import type { Session } from '../../framework/context.js'
import { owner, requires } from '../../framework/declaration.js'
import { readList } from '../../framework/list.js'
import { detached, list, query } from '../../framework/operation.js'
import * as output from '../../framework/output.js'
import { type List, listOutput, newestInput, type PageRequest, pageInput } from '../../framework/page.js'
import { closedInput, type Infer, inputSchema, onlyOf, textOf } from '../../framework/schema.js'
import type { Condition } from '../../storage/store.js'

const { arrayOf, boolean, component, count, date, enumOf, object, text, uuid } = output

const logProperties = {
  id: uuid,
  tenant_id: uuid,
  'actor_id?': text,
  'actor_type?': enumOf('application', 'user', 'system'),
  entity_type: text,
  entity_id: text,
  operation: enumOf('create', 'read', 'update', 'delete', 'use', 'react'),
  message: text,
  created_at: date,
} as const

const logOutput = component(
  'Log',
  ['created_at', 'actor_type', 'operation', 'entity_type', 'entity_id', 'message'],
  logProperties,
)
const LARGEST_PAGE = 10_000

const filters = {
  entity_type: {
    ...textOf(
      100,
      'Only records of this type of entity; see coffer log entity-types. The type token includes cards and banks.',
    ),
    ...onlyOf(Object.keys(ENTITY_TYPES)),
  },
  entity_id: { ...textOf(400, 'Only records of the entity with this id.'), refersTo: 'token' },
  start_date: { type: 'string', duration: 'ago', maxLength: 100, description: 'From this ISO 8601 date on.' },
  end_date: { type: 'string', duration: 'ago', maxLength: 100, description: 'Before this ISO 8601 date.' },
} as const

type LogFilters = Infer<{ type: 'object'; properties: typeof filters }>

const logList = {
  name: 'log list',
  summary: 'List log records, newest first.',
  access: requires('log:read'),
  input: inputSchema([], { ...filters, ...pageInput(LARGEST_PAGE) }),
  check: dateConditions,
} as const

function findLogs<T>(
  session: Session,
  input: LogFilters & PageRequest,
  dates: Condition[],
  view: (record: LogRecord) => T,
) {
  const and = [...entityConditions(input), ...dates]
  const where = async () => (and.length === 0 ? undefined : { and })
  return readList(session, { kind: 'log', where, show: (_, record) => view(record) }, input)
}

const listLogs = list({
  ...logList,
  route: 'GET /logs',
  output: listOutput(logOutput),
  cli: { positionals: ['entity_id'] },
  examples: [
    'coffer log list',
    'coffer log list card-1',
    'coffer log list --entity-type token --start-date 24h',
  ],
  run: (session, input, dates) => findLogs(session, input, dates, viewLog),
})

/** Only for the dashboard, because log records of the API have no trace id. */
export const listTracedLogs = list({
  ...logList,
  output: listOutput(object({ ...logProperties, trace_id: text })),
  examples: [],
  run: (session, input, dates) =>
    findLogs(session, input, dates, ({ transform: _, ...record }: LogRecord) => record),
})

const listEntityTypes = query({
  name: 'log entity-types',
  summary: 'List the entity types of the log.',
  access: requires('log:read'),
  route: 'GET /logs/entity-types',
  output: arrayOf(component('EntityType', ['display_name', 'value'], { display_name: text, value: text })),
  examples: ['coffer log entity-types'],
  run: async () => Object.entries(ENTITY_TYPES).map(([value, display_name]) => ({ display_name, value })),
})

const tailLog = list({
  name: 'log tail',
  summary: 'Print the newest log records, oldest first; with -f also new ones as they are written.',
  access: requires('log:read'),
  input: closedInput([], { number: newestInput(LARGEST_PAGE, 'The number of records.') }),
  output: listOutput(logOutput),
  examples: ['coffer log tail -n 50', 'coffer log tail -f & sleep 1; kill $!; wait'],
  run: async ({ caller, perform }, { number = 20 }) => {
    const list = await perform(caller, listLogs, { size: Math.max(1, number) })
    const { pagination, data } = list as List<ReturnType<typeof viewLog>>
    return { pagination, data: data.slice(0, number).toReversed() }
  },
})

const verifyLog = detached({
  name: 'log verify',
  access: owner,
  summary: 'Verify that no log record was changed, removed, inserted or reordered.',
  details:
    'Reads the whole log of the tenant. If a server has the vault open, the server does not answer requests until the\n' +
    'verification ends. This does not apply to PostgreSQL.',
  output: object({
    tenant: object({ id: uuid, name: text }),
    is_whole: boolean,
    records: count,
    'broken_at?': count,
  }),
  examples: ['coffer log verify'],
  run: async (session) => {
    const tenant = await session.inUnit(async (context) => {
      const { id, name } = await context.tenant()
      return { id, name }
    })
    const { count, brokenAt } = await session.vault().store.verifyLogs(session.caller.tenant)
    const isWhole = brokenAt === undefined
    return { tenant, is_whole: isWhole, records: count, ...omitUndefined({ broken_at: brokenAt }) }
  },
})

const MAX_GROUPED = 10_000
export const REVEALS =
  'Count how often callers got the plaintext of one or all tokens, and how often reactors and proxies used plaintext.'
export const revealsInput = closedInput([], {
  token: { ...textOf(400, 'The id of the token, deleted or not; default: all tokens.'), refersTo: 'token' },
})
const actors = arrayOf(object({ 'actor_type?': text, 'actor_id?': text, count, last_at: date }))
export const revealsOutput = object({ count, seen_by: actors, use_count: count, used_by: actors })

export const countReveals = detached({
  name: 'log reveals',
  summary: REVEALS,
  details:
    'count and seen_by: answers that gave a caller plaintext. use_count and used_by: calls of reactors and proxies. These\n' +
    'calls always get plaintext, and their answers may contain plaintext. The counts cover all log records. seen_by and\n' +
    'used_by cover only the newest 10,000 answers and the newest 10,000 calls.',
  access: requires('log:read'),
  input: revealsInput,
  output: revealsOutput,
  cli: { positionals: ['token'] },
  examples: ['coffer log reveals card-1', 'coffer log reveals'],
  run: async ({ inUnit, caller }, { token }) => {
    const which = token === undefined ? { class: 'token' } : { type_entity: `token:${token}` }
    const find = (operation: 'read' | 'use') => {
      const fields = { ...which, operation, transform: 'reveal' }
      const and = Object.entries(fields).map(([field, value]) => ({ field, value }))
      const page = { where: { and }, page: 1, size: MAX_GROUPED }
      return inUnit(({ store }) => store.find('log', caller.tenant, page))
    }
    const [seen, used] = [await find('read'), await find('use')]
    return {
      count: seen.total,
      seen_by: groupByActor(seen.records),
      use_count: used.total,
      used_by: groupByActor(used.records),
    }
  },
})

/** Requires: `records` are in order, newest first. */
function groupByActor(records: readonly LogRecord[]): Infer<typeof actors> {
  const groups = new Map<string | undefined, Infer<typeof actors>[number]>()
  for (const { actor_type, actor_id, created_at } of records) {
    const first = { ...omitUndefined({ actor_type, actor_id }), count: 0, last_at: created_at }
    const known = groups.get(actor_id) ?? first
    groups.set(actor_id, { ...known, count: known.count + 1 })
  }
  return [...groups.values()]
}

/** The log object of the API has neither a trace id nor a transform. */
function viewLog({ trace_id: _, transform: _transform, ...view }: LogRecord): Infer<typeof logOutput> {
  return view
}

function entityConditions({ entity_type: type, entity_id: id }: LogFilters): Condition[] {
  const ids = id === undefined ? [] : [{ field: 'entity', value: id }]
  if (type === undefined) return ids
  // This index finds the log of a token with one look-up.
  if (type === 'token' && id !== undefined) return [{ field: 'type_entity', value: `token:${id}` }]
  return [{ field: type === 'token' ? 'class' : 'type', value: type }, ...ids]
}

function dateConditions({ start_date, end_date }: Lenient<LogFilters>): Condition[] {
  const errors: PropertyErrors = {}
  const read = (property: string, text: string | undefined) =>
    text === undefined ? undefined : collect(errors, property, () => parseLogDate(text))
  const from = read('start_date', start_date)
  const below = read('end_date', end_date)
  refuseErrors(errors)
  if (from === undefined && below === undefined) return []
  return [{ range: 'created', ...omitUndefined({ from, below }) }]
}

export const noun = {
  name: 'log',
  summary: 'Read and verify the audit log',
  operations: [listLogs, listEntityTypes, tailLog, countReveals, verifyLog],
}
