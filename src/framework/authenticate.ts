/** Authentication: the caller of an API key. A verified key is cached until a record that it depends on changes. */

import { isApiKey, keysOf } from '../domain/application.js'
import type { ApplicationRecord, Kind } from '../domain/records.js'
import { CofferError } from '../errors.js'
import type { StoreReader } from '../storage/store.js'
import { type Caller, decideBy } from './caller.js'
import type { Host } from './host.js'

/** Kinds of records that authentication reads. */
const DEPENDS_ON: readonly Kind[] = ['settings', 'api_key', 'tenant', 'application']

/**
 * The application that `key` belongs to, as a caller.
 * @throws CofferError `unauthenticated`, with the same message for every reason, so that it tells nothing about keys.
 */
export async function authenticate(host: Host, key: string): Promise<Caller> {
  if (!isApiKey(key)) throw unauthenticated()
  const counter = host.store.changeCounter(DEPENDS_ON)
  const known = counter === undefined ? undefined : host.callers.find(key, counter)
  if (known !== undefined) return known
  const { caller, expires } = await readCaller(host, key)
  if (counter !== undefined && !expires) host.callers.keep(key, counter, caller)
  return caller
}

function readCaller(host: Host, key: string): Promise<{ caller: Caller; expires: boolean }> {
  return host.store.read(async (reader) => {
    const hash = await host.hashSecret(key, reader)
    const entry = await reader.get('api_key', 0, hash)
    if (entry === undefined || !host.isEqualSecret(entry.id, hash)) throw unauthenticated()
    const application = await findApplication(reader, entry.tenant, entry.application_id)
    if (application === undefined) throw unauthenticated()
    if (!keysOf(application).some((known) => host.isEqualSecret(known.hash, hash))) throw unauthenticated()
    if (isExpiredApplication(application, reader.now)) throw unauthenticated()
    const caller = applicationCaller(entry.tenant, application)
    return { caller, expires: application.expires_at !== undefined }
  })
}

/** Whether the application's keys have expired. `now`: ms since the epoch. */
export function isExpiredApplication({ expires_at }: ApplicationRecord, now: number): boolean {
  return expires_at !== undefined && Date.parse(expires_at) <= now
}

export function applicationCaller(tenant: number, application: ApplicationRecord): Caller {
  return {
    tenant,
    actor: { type: 'application', id: application.id },
    applicationType: application.type,
    ...decideBy(application),
  }
}

async function findApplication(
  reader: StoreReader,
  tenant: number,
  id: string,
): Promise<ApplicationRecord | undefined> {
  // The API key records of a deleted tenant may still exist.
  if ((await reader.get('tenant', 0, String(tenant))) === undefined) return undefined
  return reader.get('application', tenant, id)
}

function unauthenticated(): CofferError {
  return new CofferError('unauthenticated', 'The API key is missing, unknown, or no longer valid.')
}
