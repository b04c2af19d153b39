import { API_KEY, isExpired, SESSION_KEY } from '../../domain/access/application.js'
import type { ApplicationRecord, Kind } from '../../domain/records/records.js'
import { isKey } from '../../domain/text/base58.js'
import { isTestKey } from '../../domain/text/chosen-key.js'
import { CofferError } from '../../errors.js'
import type { StoreReader } from '../../storage/store.js'
import type { Host } from '../host.js'
import { readSetting } from '../setting.js'
import { type Caller, decideBy, type RightsSource } from './caller.js'

const DEPENDS_ON: readonly Kind[] = ['settings', 'api_key', 'tenant', 'application']
const SESSION_DEPENDS_ON: readonly Kind[] = [...DEPENDS_ON, 'session']

/**
 * With `allowsCached`, the rights of the caller may be out of date. Requires: a unit of work then checks the rights
 * before the request is answered (`RightsSource`).
 * @throws CofferError `unauthenticated`, without a reason
 */
export async function authenticate(
  host: Host,
  key: string,
  { allowsCached = false }: { allowsCached?: boolean } = {},
): Promise<Caller> {
  const isSession = isKey(key, SESSION_KEY)
  if (!isSession && !isKey(key, API_KEY) && !(host.acceptsTestKeys === true && isTestKey(key)))
    throw unauthenticated()
  const current = host.store.changeCounter(DEPENDS_ON)
  const version = current ?? (allowsCached ? host.store.cachedCounter(DEPENDS_ON) : undefined)
  const known = isSession || version === undefined ? undefined : host.callers.find(key, version)
  if (known !== undefined) return known
  const { caller, until, counter } = await host.store.read(async (reader) => {
    const hash = await host.hashSecret(key, reader)
    const counter = reader.changeCounter(DEPENDS_ON)
    return { counter, ...(await (isSession ? readSession : readKey)(host, hash, reader)) }
  })
  if (!isSession && counter !== undefined && until === undefined)
    host.callers.put(key, current ?? counter, caller)
  return caller
}

interface Authenticated {
  caller: Caller
  until: number | undefined
}

async function readKey(host: Host, hash: string, reader: StoreReader): Promise<Authenticated> {
  const isUnchanged = watch(reader, DEPENDS_ON)
  const entry = await reader.get('api_key', 0, hash)
  if (entry?.application_id === undefined || !host.isEqualSecret(entry.id, hash)) throw unauthenticated()
  const application = await requireApplication(reader, entry.tenant, entry.application_id)
  const known = application.keys.find((each) => host.isEqualSecret(each.hash, hash))
  if (known === undefined || isExpired(known, reader.now)) throw unauthenticated()
  const until = earliest(expiryOf(application), expiryOf(known))
  const source = createSource(isUnchanged, until, (later) => readKey(host, hash, later))
  return { caller: { ...applicationCaller(entry.tenant, application), source }, until }
}

/**
 * A session acts as the public application that created the session, but with its own grants instead of the grants of
 * the application.
 */
async function readSession(host: Host, hash: string, reader: StoreReader): Promise<Authenticated> {
  const isUnchanged = watch(reader, SESSION_DEPENDS_ON)
  const record = await reader.get('session', 0, hash)
  if (record === undefined || !host.isEqualSecret(record.id, hash)) throw unauthenticated()
  const { id, tenant, authorized, expires } = record
  const application = await requireApplication(reader, tenant, record.application_id)
  const authorizer = authorized && (await requireApplication(reader, tenant, authorized.by))
  const until = earliest(expires, expiryOf(application), authorizer && expiryOf(authorizer))
  const source = createSource(isUnchanged, until, (later) => readSession(host, hash, later))
  const session = { id, isAuthorized: authorized !== undefined }
  const caller = { ...applicationCaller(tenant, application), session, source }
  if (authorized === undefined || authorizer === undefined)
    return { caller: { ...caller, ...decideBy({ rules: [], permissions: [] }) }, until }
  const decider = (await readSetting(reader, 'sessions.beyond_authorizer'))
    ? decideBy(authorized)
    : decideBy({ ...authorized, of: 'session' }, { ...authorizer, of: 'authorizer' })
  return { caller: { ...caller, ...decider }, until }
}

/**
 * The returned function returns true until a record of one of `kinds` changes. Requires: `watch` is called before the
 * records are read.
 */
function watch(reader: StoreReader, kinds: readonly Kind[]): (later: StoreReader) => boolean {
  const version = reader.changeCounter(kinds)
  return (later) => version !== undefined && later.changeCounter(kinds) === version
}

function createSource(
  isUnchanged: (later: StoreReader) => boolean,
  until: number | undefined,
  read: (later: StoreReader) => Promise<Authenticated>,
): RightsSource {
  return {
    isCurrent: (later) => isUnchanged(later) && (until === undefined || later.now < until),
    read: async (later) => (await read(later)).caller,
  }
}

function expiryOf({ expires_at }: { expires_at?: string }): number | undefined {
  return expires_at === undefined ? undefined : Date.parse(expires_at)
}

function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}

export async function readApplicationCaller(
  reader: StoreReader,
  tenant: number,
  id: string,
): Promise<Caller> {
  return (await readApplication(reader, tenant, id)).caller
}

async function readApplication(reader: StoreReader, tenant: number, id: string): Promise<Authenticated> {
  const isUnchanged = watch(reader, DEPENDS_ON)
  const application = await reader.get('application', tenant, id)
  if (application === undefined)
    throw new CofferError('not_found', 'There is no application with this id. Run: coffer app list')
  if (isExpired(application, reader.now))
    throw new CofferError('unauthenticated', 'The key of this application has expired.')
  const until = expiryOf(application)
  const source = createSource(isUnchanged, until, (later) => readApplication(later, tenant, id))
  return { caller: { ...applicationCaller(tenant, application), source }, until }
}

/** Returns a caller without a rights source, so later changes of the application do not apply. */
export function applicationCaller(
  tenant: number,
  application: Pick<ApplicationRecord, 'id' | 'type' | 'permissions' | 'rules'>,
): Caller {
  return {
    tenant,
    actor: { type: 'application', id: application.id },
    applicationType: application.type,
    ...decideBy(application),
  }
}

async function requireApplication(reader: StoreReader, tenant: number, id: string) {
  // The key records and sessions of a deleted tenant may still exist.
  const isThere = (await reader.get('tenant', 0, String(tenant))) !== undefined
  const application = isThere ? await reader.get('application', tenant, id) : undefined
  if (application === undefined || isExpired(application, reader.now)) throw unauthenticated()
  return application
}

function unauthenticated(): CofferError {
  return new CofferError('unauthenticated', 'The API key is missing, unknown, or no longer valid.')
}
