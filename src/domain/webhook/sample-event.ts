/** Made-up events. A user can test a receiver with an event that did not happen. */
import { formatDate } from '../dates.js'
import { isObject } from '../json/json.js'
import { describeEvent, type EventType, SENT_EVENT_TYPES } from './events.js'

const MAX_PATH_PARTS = 8
const PATH_PART = /^[a-z0-9_]{1,50}$/i

const DAY_MS = 24 * 60 * 60 * 1000

interface Tools {
  createUuid(): string
  /** The current time, in ms since the epoch. */
  now: number
}

/**
 * Returns a value for each attribute that an event of this server can have. Attributes have the names that records
 * use.
 */
function sampleRecord({ createUuid, now }: Tools): Record<string, unknown> {
  const actor = createUuid()
  const date = formatDate(now)
  return {
    id: createUuid(),
    name: 'sample',
    type: 'card',
    metadata: {},
    containers: ['/pci/high/'],
    fingerprint: 'CC2XvyoohnqecEq4r3FtXv6MdCx4TbaW1UUTdCCN5MNL',
    fingerprint_expression: '{{ data.number }}',
    search_indexes: [],
    expires_at: formatDate(now + DAY_MS),
    created_by: actor,
    created_at: date,
    modified_by: actor,
    modified_at: date,
    property_name: 'cvc',
    permissions: ['token:read'],
    rules: [],
    application_id: createUuid(),
    destination_url: 'https://example.com/payments',
    require_auth: true,
    response: { status: 200, elapsed_ms: 120 },
    elapsed_ms: 120,
    error: 'The code threw an error.',
    issued_to_application: { id: createUuid(), name: 'sample' },
    email: 'ada@example.com',
    role: 'ADMIN',
    status: 'completed',
    user_id: createUuid(),
  }
}

/** The type of the object in the sample, for each event. For an event that is not listed, the type is `card`. */
const TYPES: Readonly<Record<string, string>> = {
  application: 'private',
  proxy: 'configured',
}

/** The additional objects of events that have more than one object. */
function furtherObjects(type: string, { createUuid }: Tools): Record<string, object> {
  if (type === 'token-intent.converted') return { token: { id: createUuid(), type: 'card' } }
  if (type === 'proxy.invoked')
    return {
      destination: {
        request: { method: 'POST', url: 'https://example.com/payments' },
        response: { status: 200, elapsed_ms: 100 },
      },
    }
  if (/^reactor\.(invoked|completed|failed)$/.test(type)) return { request: { invocation_type: 'sync' } }
  return {}
}

/**
 * Returns the object of an event that this server sends only when a user triggers it. The service documents only the
 * name of this object.
 */
function sampleOfSilent(type: string, tools: Tools): Record<string, object> {
  const { id, name, created_by, created_at } = sampleRecord(tools)
  if (type === 'tenant.created') return { tenant: { id, name, created_by, created_at } }
  if (type === 'tenant.deleted') return { tenant: { id } }
  if (type === 'http.request')
    return { request: { method: 'POST', url: 'https://example.com/tokens' }, response: { status: 201 } }
  const created = { id, created_by, created_at }
  if (type.startsWith('3ds.')) return { session: { ...created, type: 'customer', device: 'browser' } }
  const object = type.slice(0, type.lastIndexOf('.')).replaceAll(/[.-]/g, '_')
  return { [object]: created }
}

/** Returns the `data` of a made-up event, without its actor. `type`: one of the known event types. */
export function sampleEvent(type: string, tools: Tools): Record<string, object> {
  if (!SENT_EVENT_TYPES.includes(type)) return sampleOfSilent(type, tools)
  const record = sampleRecord(tools)
  const about = { ...record, type: TYPES[type.split('.')[0]!] ?? record.type }
  return describeEvent({ type: type as EventType, about, more: furtherObjects(type, tools) })
}

/**
 * Returns `data` with other values. `set`: values by path, such as `token.type`. Objects that a path names and `data`
 * lacks are created. Returns undefined if a path is invalid, or leads through a value that is no object.
 */
export function setValues(
  data: Record<string, object>,
  set: Readonly<Record<string, unknown>>,
): Record<string, object> | { wrongPath: string } {
  const changed = structuredClone(data)
  for (const [path, value] of Object.entries(set)) {
    const parts = path.split('.')
    const last = parts.pop()!
    const isPath = parts.length > 0 && parts.length < MAX_PATH_PARTS
    if (!isPath || ![...parts, last].every((part) => PATH_PART.test(part) && part !== '__proto__'))
      return { wrongPath: path }
    let at: Record<string, unknown> = changed
    for (const part of parts) {
      if (!Object.hasOwn(at, part)) at[part] = {}
      const next = at[part]
      if (!isObject(next)) return { wrongPath: path }
      at = next
    }
    at[last] = value
  }
  return changed
}
