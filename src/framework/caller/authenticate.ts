/** Authentication: the caller of an API key. A verified key is cached until a record that it depends on changes. */
import { API_KEY, SESSION_KEY } from '../../domain/access/application.js'
import type { ApplicationRecord, Kind } from '../../domain/records/records.js'
import { settingOf } from '../../domain/settings.js'
import { isKey } from '../../domain/text/base58.js'
import { CofferError } from '../../errors.js'
import type { StoreReader } from '../../storage/store.js'
import type { Host } from '../operation.js'
import { type Caller, decideBy } from './caller.js'

const DEPENDS_ON: readonly Kind[] = ['settings', 'api_key', 'tenant', 'application']

/** `allowsCached`: for a unit in `retryIfStale`. @throws CofferError `unauthenticated`, without a reason */
export async function authenticate(
  host: Host,
  key: string,
  { allowsCached = false }: { allowsCached?: boolean } = {},
): Promise<Caller> {
  if (isKey(key, SESSION_KEY)) return host.store.read((reader) => readSession(host, key, reader))
  if (!isKey(key, API_KEY)) throw unauthenticated()
  const current = host.store.changeCounter(DEPENDS_ON)
  const version = current ?? (allowsCached ? host.store.cachedCounter(DEPENDS_ON) : undefined)
  const known = version === undefined ? undefined : host.callers.find(key, version)
  if (known !== undefined && current !== undefined) return known
  if (known !== undefined)
    // The spread is last: V8 gives an object that gets members after one a slow form, which costs microseconds.
    return {
      cached: { version: version!, isCurrent: false, renew: () => authenticate(host, key) },
      ...known,
    }
  const { caller, expires, version: read } = await readCaller(host, key)
  if (read !== undefined && !expires) host.callers.put(key, current ?? read, caller)
  return caller
}

/** Returns the version of the records that authentication reads; undefined if the unit has changed one. */
export function versionOf(reader: StoreReader): number | undefined {
  return reader.changeCounter(DEPENDS_ON)
}

function readCaller(host: Host, key: string) {
  return host.store.read(async (reader) => {
    const hash = await host.hashSecret(key, reader)
    const entry = await reader.get('api_key', 0, hash)
    if (entry?.application_id === undefined || !host.isEqualSecret(entry.id, hash)) throw unauthenticated()
    const application = await requireApplication(reader, entry.tenant, entry.application_id)
    if (!application.keys.some((known) => host.isEqualSecret(known.hash, hash))) throw unauthenticated()
    const caller = applicationCaller(entry.tenant, application)
    return { caller, expires: application.expires_at !== undefined, version: versionOf(reader) }
  })
}

/** A session acts as the public application that created it, with what it was granted instead of its permissions. */
async function readSession(host: Host, key: string, reader: StoreReader): Promise<Caller> {
  const hash = await host.hashSecret(key, reader)
  const record = await reader.get('session', 0, hash)
  if (record === undefined || !host.isEqualSecret(record.id, hash)) throw unauthenticated()
  const { id, tenant, authorized } = record
  const application = await requireApplication(reader, tenant, record.application_id)
  const caller = applicationCaller(tenant, application)
  const session = { id, isAuthorized: authorized !== undefined }
  if (authorized === undefined) return { ...caller, session, ...decideBy({ rules: [], permissions: [] }) }
  const authorizer = await requireApplication(reader, tenant, authorized.by)
  const { values = {} } = (await reader.get('settings', 0, 'vault')) ?? {}
  const decider = settingOf(values, 'sessions.beyond_authorizer')
    ? decideBy(authorized)
    : decideBy({ ...authorized, of: 'session' }, { ...authorizer, of: 'authorizer' })
  return { ...caller, session, ...decider }
}

export function isExpiredApplication({ expires_at }: ApplicationRecord, now: number): boolean {
  return expires_at !== undefined && Date.parse(expires_at) <= now
}

/** The caller that an application is with its key. @throws CofferError `not_found`, `unauthenticated` if it has expired */
export async function readApplicationCaller(reader: StoreReader, tenant: number, id: string) {
  const application = await reader.get('application', tenant, id)
  if (application === undefined)
    throw new CofferError('not_found', 'There is no application with this id. Run: coffer app list')
  if (isExpiredApplication(application, reader.now))
    throw new CofferError('unauthenticated', 'The key of this application has expired.')
  return applicationCaller(tenant, application)
}

export function applicationCaller(tenant: number, application: ApplicationRecord): Caller {
  return {
    tenant,
    actor: { type: 'application', id: application.id },
    applicationType: application.type,
    ...decideBy(application),
  }
}

/** @throws CofferError `unauthenticated` for an application that was deleted or has expired */
async function requireApplication(reader: StoreReader, tenant: number, id: string) {
  // The API key records and sessions of a deleted tenant may still exist.
  const isThere = (await reader.get('tenant', 0, String(tenant))) !== undefined
  const application = isThere ? await reader.get('application', tenant, id) : undefined
  if (application === undefined || isExpiredApplication(application, reader.now)) throw unauthenticated()
  return application
}

function unauthenticated(): CofferError {
  return new CofferError('unauthenticated', 'The API key is missing, unknown, or no longer valid.')
}
