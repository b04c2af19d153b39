import { formatDate } from '../dates.js'
import { isObject } from '../json/json.js'
import { describeEvent, type EventType, SENT_EVENT_TYPES } from './events.js'

const MAX_PATH_PARTS = 8
const PATH_PART = /^[a-z0-9_]{1,50}$/i

const DAY_MS = 24 * 60 * 60 * 1000

interface Tools {
  createUuid(): string
  /** In ms since the epoch. */
  now: number
}

/** Returns sample values, by the names that the attributes have in records. */
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
    status: 'active',
    user_id: createUuid(),
    tenant_id: createUuid(),
    token_id: createUuid(),
    card_brand: 'Visa',
    device: 'browser',
    authentication_status: 'successful',
  }
}

/** Values that replace values of {@link sampleRecord}, by the beginning of the event type. */
const SPECIAL: readonly (readonly [prefix: string, values: Readonly<Record<string, string>>])[] = [
  ['application.', { type: 'private' }],
  ['proxy.', { type: 'configured' }],
  ['3ds.', { type: 'customer' }],
  ['account-updater.job.created', { status: 'pending' }],
  ['account-updater.job.completed', { status: 'completed' }],
  ['account-updater.job.failed', { status: 'failed' }],
]

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
 * Returns the objects of an event that this server sends only as a test event. The service documents only the names of
 * these objects.
 */
function sampleOfSilent(type: string, tools: Tools): Record<string, object> {
  const { id, name, created_by, created_at } = sampleRecord(tools)
  if (type === 'tenant.created') return { tenant: { id, name, created_by, created_at } }
  if (type === 'tenant.deleted') return { tenant: { id } }
  if (type === 'http.request')
    return { request: { method: 'POST', url: 'https://example.com/tokens' }, response: { status: 201 } }
  const created = { id, created_by, created_at }
  const object = type.slice(0, type.lastIndexOf('.')).replaceAll(/[.-]/g, '_')
  return { [object]: created }
}

/** Returns `data` of an event, without the actor. `type`: a known event type. */
export function sampleEvent(type: string, tools: Tools): Record<string, object> {
  if (!SENT_EVENT_TYPES.includes(type)) return sampleOfSilent(type, tools)
  const special = SPECIAL.find(([prefix]) => type.startsWith(prefix))
  const about = { ...sampleRecord(tools), ...special?.[1] }
  return describeEvent({ type: type as EventType, about, more: furtherObjects(type, tools) })
}

/**
 * `set`: values by path, such as `token.type`. Creates missing objects. Returns `wrongPath` if a path is invalid, or
 * leads through a value that is no object.
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
