/** From an API key to a caller. A checked key is known until a record changes that it depends on. */

import { decideTransform, type Grants, holdsPermission } from '../domain/access.js'
import { isApiKey } from '../domain/application.js'
import type { ApplicationRecord, Kind } from '../domain/records.js'
import { CofferError } from '../errors.js'
import type { StoreReader } from '../storage/store.js'
import type { Caller } from './caller.js'
import type { Host } from './host.js'

/** The records that lead from a key to a caller. */
const DEPENDS_ON: readonly Kind[] = ['settings', 'api_key', 'tenant', 'application']

/**
 * The application that `key` belongs to, as a caller.
 * @throws CofferError `unauthenticated`, without saying why: who has no key learns nothing about keys.
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
    if (application === undefined || !host.isEqualSecret(application.key_hash, hash)) throw unauthenticated()
    if (isExpiredApplication(application, reader.now)) throw unauthenticated()
    const caller = applicationCaller(entry.tenant, application)
    return { caller, expires: application.expires_at !== undefined }
  })
}

/** Whether its key has stopped working. `now`: ms since the epoch. */
export function isExpiredApplication({ expires_at }: ApplicationRecord, now: number): boolean {
  return expires_at !== undefined && Date.parse(expires_at) <= now
}

/** What an application may do, from what it was given. */
export function applicationCaller(tenant: number, application: ApplicationRecord): Caller {
  const grants: Grants = application
  return {
    tenant,
    actor: { type: 'application', id: application.id },
    grants,
    holds: (permission) => holdsPermission(grants, permission),
    // What covers the root covers everything below it.
    holdsEverywhere: (permission) => decideTransform(grants, permission, ['/']) !== undefined,
    transform: (permission, containers) => decideTransform(grants, permission, containers),
  }
}

async function findApplication(
  reader: StoreReader,
  tenant: number,
  id: string,
): Promise<ApplicationRecord | undefined> {
  // The keys of a deleted tenant's applications outlive it only as hashes that lead nowhere.
  if ((await reader.get('tenant', 0, String(tenant))) === undefined) return undefined
  return reader.get('application', tenant, id)
}

function unauthenticated(): CofferError {
  return new CofferError('unauthenticated', 'The API key is missing, unknown, or no longer valid.')
}
