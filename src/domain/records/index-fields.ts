/** For each index field, the store keeps a keyed digest of the name and value, and never the value itself. */
import { ancestorsOf, containerSetId } from '../access/container.js'
import { minuteOf, monthOf } from '../dates.js'
import { normalizeEmail } from '../invitation/mail-server.js'
import { shortIdOf } from '../token/short-id.js'
import { countValues } from '../webhook/event-batch.js'
import type { LogBlockRecord } from './log-record.js'
import type { Kind, RecordOf, TokenRecord } from './records.js'

/** A row has at most 255 index fields. */
export const SUBJECTS_OF_ROW = 200

export type IndexField = Record<'field' | 'value', string>

const INDEX_FIELDS: { [K in Kind]?: (record: RecordOf[K]) => IndexField[] } = {
  tenant: ({ id, name }) => listFields({ id, name: name.toLowerCase() }),
  user: ({ email }) => listFields({ email: email && normalizeEmail(email) }),
  token: tokenFields,
  containers: ({ created_by }) => listFields({ created_by }),
  application: ({ type, name }) => listFields({ type, name: name.toLowerCase() }),
  api_key: ({ application_id: application }) => listFields({ application }),
  association: ({ parent_id: parent, child_id: child }) => listFields({ parent, child }),
  // The field `created` finds the last creation of a token of one type.
  activity: ({ month, created }) => listFields({ month, created }),
  merchant: ({ name }) => listFields({ name }),
  member: ({ user_id: user, role }) => listFields({ user, role }),
  link: ({ tenant }) => listFields({ tenant: String(tenant) }),
  session: ({ nonce, application_id: application, authorized }) =>
    listFields({ nonce, application, authorizer: authorized?.by }),
  answer: ({ subjects }) =>
    subjects.slice(0, SUBJECTS_OF_ROW).map(({ kind, id }) => ({ field: kind, value: id })),
  mail: ({ invitation_id: invitation, state, due_at, trace_id: trace }) =>
    listFields({
      invitation,
      state,
      trace,
      due: state === 'waiting' ? due_at && minuteOf(due_at) : undefined,
    }),
  delivery: ({ webhook_id: webhook, state, due_at, event: { trace_id: trace } }) =>
    listFields({ webhook, state, trace, due: state === 'waiting' ? due_at && minuteOf(due_at) : undefined }),
  account_updater_job: (record) => {
    if ('job_id' in record) return []
    const { state, due_at, trace_id: trace } = record
    return listFields({ entity: 'job', state, trace, due: due_at && minuteOf(due_at) })
  },
  network_token: ({ fingerprint: card, state, due_at }) =>
    listFields({ card, state, due: due_at && minuteOf(due_at) }),
  waiting_batch: (waiting) => [
    ...listFields({ webhook: waiting.webhook_id, trace: waiting.trace_id }),
    ...countValues(waiting).map((value) => ({ field: 'count', value })),
  ],
  reactor: ({ formula_id: formula, application_id: application }) => listFields({ formula, application }),
  proxy: ({ request_reactor_id: request, response_reactor_id: response }) =>
    [...new Set([request, response])].flatMap((reactor) => listFields({ reactor })),
  reactor_log: ({ reactor_id: reactor, trace_id: trace }) => listFields({ reactor, trace }),
  reactor_result: ({ reactor_id: reactor }) => listFields({ reactor }),
  threeds_place: ({ tenant }) => listFields({ tenant: String(tenant) }),
  wallet_certificate: ({ merchant_id: merchant }) => listFields({ merchant }),
  callback: ({ reactor_id: reactor, state, due_at, trace_id: trace }) =>
    listFields({ reactor, state, trace, due: minuteOf(due_at) }),
  log_block: (record) => ('items' in record ? blockFields(record) : []),
}

function listFields(values: Readonly<Record<string, string | undefined>>): IndexField[] {
  return Object.entries(values).flatMap(([field, value]) => (value === undefined ? [] : [{ field, value }]))
}

export function indexFieldsOf<K extends Kind>(kind: K, record: RecordOf[K]): IndexField[] {
  return INDEX_FIELDS[kind]?.(record) ?? []
}

function metadataFields(name: string, value: string): IndexField[] {
  const folded = value.toLowerCase()
  const entry = { field: `entry.${name}`, value }
  return folded === value ? [entry] : [entry, { field: `folded.${name}`, value: folded }]
}

/**
 * Every token with this entry has at least one of the returned fields. The name is case-sensitive. The value is
 * case-sensitive only with `isExact`.
 */
export function metadataLookups(name: string, value: string, isExact = false): IndexField[] {
  if (isExact) return [{ field: `entry.${name}`, value }]
  const folded = value.toLowerCase()
  return ['entry', 'folded'].map((field) => ({ field: `${field}.${name}`, value: folded }))
}

export function searchField(value: string): IndexField {
  return { field: 'search', value: value.toLowerCase() }
}

/** A row has at most 255 fields. The limits of metadata, containers and search indexes ensure this. */
function tokenFields({ id, metadata, fingerprint }: TokenRecord): IndexField[] {
  const fields = [{ field: 'fingerprint', value: fingerprint }]
  const short = shortIdOf(id)
  if (short !== undefined) fields.push({ field: 'short_id', value: short })
  for (const name in metadata) fields.push(...metadataFields(name, metadata[name]!))
  return fields
}

/**
 * Records with equal results have equal {@link sharedFieldsOf}, which are stored once. Returns undefined if the kind
 * has no shared fields.
 */
export function sharingOf(kind: Kind, record: RecordOf[Kind]): string | undefined {
  if (kind !== 'token') return undefined
  const { type, containers, created_by, modified_by, created_at, expires_at } = record as TokenRecord
  return JSON.stringify([type, containers, created_by, modified_by, expires_at ? 0 : monthOf(created_at)])
}

/** `ancestor` finds the tokens in a container and in all containers below this container. */
export function sharedFieldsOf(record: TokenRecord): IndexField[] {
  const { containers, modified_by } = record
  const fields = [{ field: 'type', value: record.type }]
  for (const value of new Set(containers)) fields.push({ field: 'container', value })
  for (const value of ancestorsOf(containers)) fields.push({ field: 'ancestor', value })
  fields.push({ field: 'containers', value: containerSetId(containers) })
  fields.push({ field: 'created_by', value: record.created_by })
  if (modified_by !== undefined) fields.push({ field: 'modified_by', value: modified_by })
  // For a token that expires, an `activity` record stores the month of creation (`operations/token/lifetime.ts`).
  if (record.expires_at === undefined) fields.push({ field: 'month', value: monthOf(record.created_at) })
  return fields
}

export function logField(chain: number, field: string, value: string): IndexField {
  return { field: chain === 1 ? field : `${field}.${chain}`, value }
}

function blockFields({ id, shapes, items }: LogBlockRecord): IndexField[] {
  // The id of a log block or log head begins with the number of its chain.
  const chain = Number.parseInt(id, 10)
  const fields = [logField(chain, 'block', '')]
  for (const type of new Set(shapes.map((shape) => shape[3]))) fields.push(logField(chain, 'type', type))
  for (const entity of new Set(items.map((item) => item[2]))) fields.push(logField(chain, 'entity', entity))
  for (const trace of new Set(items.map((item) => item[3]))) fields.push(logField(chain, 'trace', trace))
  return fields
}
