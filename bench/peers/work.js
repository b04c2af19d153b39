/**
 * The work of a peer besides storage, equal to that of a vault: the hash of the key, the rule of a container, mask,
 * keyed fingerprint, and the audit row.
 */
import { createHash, createHmac, randomBytes, randomUUID } from 'node:crypto'

const TENANT = randomUUID()
const FINGERPRINT_KEY = randomBytes(32)
const DEFAULT_CONTAINERS = ['/general/high/']
/** The transform that shows most comes first. */
const TRANSFORMS = ['reveal', 'mask', 'redact']
/** The id of the application that has created the sample tokens. */
const FILLED_BY = randomUUID()
const PERMISSIONS = ['token:create', 'token:read', 'token:update', 'token:delete']

/** All peers use this key, so that several peers can share a store. */
export const key = `key_${'bench'.repeat(6)}`
export const maskingKey = `key_${'masks'.repeat(6)}`
/**
 * Applications by the SHA-256 of their key. They are cached here, so no request reads an application from the store.
 */
const known = new Map([createApplication(key, 'reveal'), createApplication(maskingKey, 'mask')])
const masks = new Map()

function createApplication(key, transform) {
  const rules = [{ priority: 1, container: '/', transform, permissions: PERMISSIONS }]
  return [hashKey(key), { id: randomUUID(), rules }]
}

function hashKey(text) {
  return createHash('sha256').update(text).digest('base64')
}

export function authenticate(text) {
  return typeof text === 'string' ? known.get(hashKey(text)) : undefined
}

/** The strictest transform over all containers, or undefined if a container is forbidden. */
export function decide({ rules }, permission, containers) {
  let strictest = 0
  for (const container of containers) {
    const rule = rules.find(
      (each) => each.permissions.includes(permission) && container.startsWith(each.container),
    )
    if (rule === undefined) return undefined
    strictest = Math.max(strictest, TRANSFORMS.indexOf(rule.transform))
  }
  return TRANSFORMS[strictest]
}

/** The rows of a new token. `body` is the response that reveals the token. */
export function prepare({ type, data, mask, metadata = {}, containers = DEFAULT_CONTAINERS }, created_by) {
  const id = randomUUID()
  const fingerprint = createHmac('sha256', FINGERPRINT_KEY).update(JSON.stringify(data)).digest('base64url')
  const created_at = new Date().toISOString()
  const shown = {
    id,
    tenant_id: TENANT,
    type,
    data,
    mask,
    fingerprint,
    containers,
    metadata,
    created_by,
    created_at,
  }
  const masked = mask === undefined ? null : JSON.stringify(applyMask(mask, data))
  const row = { id, fingerprint, containers: JSON.stringify(containers), masked, body: JSON.stringify(shown) }
  return {
    row,
    containers,
    metadata: Object.entries(metadata),
    audit: audit(created_by, 'create', id, 'Token created'),
  }
}

/** Prepares a copy of the sample token. The name and the customer of the copy depend on `serial`. */
export function prepareSample(sample, serial, customers = 1000) {
  const data = { ...sample.data, name: `Person ${serial}` }
  return prepare({ ...sample, data, metadata: { customer: String(serial % customers) } }, FILLED_BY)
}

/** The response to a read of a stored row. */
export function view({ body, masked }, transform) {
  if (transform === 'reveal') return body
  const { data, ...rest } = JSON.parse(body)
  if (transform === 'mask' && masked !== null) rest.data = JSON.parse(masked)
  return JSON.stringify(rest)
}

/** The columns of an audit row: at, operation, entity type and id, actor type and id, trace, message. */
export function audit(actor, operation, id, message) {
  return [Date.now(), operation, 'token', id, 'application', actor, randomUUID(), message]
}

function applyMask(mask, data) {
  if (typeof mask === 'string') return compileMask(mask)(data)
  if (mask === null || typeof mask !== 'object') return mask
  return Object.fromEntries(Object.entries(mask).map(([name, each]) => [name, applyMask(each, data)]))
}

/** Supports only the one expression that the benchmark uses. The expression is compiled once. */
function compileMask(text) {
  const remembered = masks.get(text)
  if (remembered !== undefined) return remembered
  const [, path, count] = /^\{\{ data\.(\w+) \| reveal_last: (\d+) \}\}$/.exec(text) ?? []
  if (path === undefined) throw new Error(`${text} is no mask that this peer knows.`)
  const mask = (data) => {
    const value = String(data[path])
    return 'X'.repeat(Math.max(0, value.length - count)) + value.slice(-count)
  }
  masks.set(text, mask)
  return mask
}
