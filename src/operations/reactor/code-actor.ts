/**
 * The caller that code acts as: an application, or a caller with the code's own permissions. Each call of the
 * code is decided by the current rights.
 */
import { isExpired } from '../../domain/access/application.js'
import type { Permission } from '../../domain/access/permissions.js'
import type { ApplicationRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import { applicationCaller } from '../../framework/caller/authenticate.js'
import { type Caller, decideBy, deriveCaller } from '../../framework/caller/caller.js'
import type { Session } from '../../framework/context.js'
import type { StoreReader } from '../../storage/store.js'

/**
 * The rights that a reactor or proxy gives its code. Without an application, the code has `permissions` on every
 * container.
 */
export interface CodeRights {
  application_id?: string | undefined
  permissions?: readonly Permission[] | undefined
}

/**
 * Reads the rights from the record of the reactor or proxy. @throws CofferError `not_found` if it was deleted
 */
export type ReadCodeRights = (reader: StoreReader) => Promise<CodeRights>

export interface CodeActor {
  /** The caller of the client of the code; undefined if the code may call nothing. */
  caller: Caller | undefined
  /** Equal to `caller` if that is an application. */
  application: Caller | undefined
  /** Differs for callers with other rights. */
  rights: string | undefined
}

/**
 * Calls of the code are refused if the caller of the session may no longer invoke the code, or if the
 * application, or the record that binds the code to it, is gone.
 */
export async function readCodeActor(
  session: Session,
  reader: StoreReader,
  readRights: ReadCodeRights,
): Promise<CodeActor> {
  const { tenant, actor } = session.caller
  const { application_id, permissions = [] } = await readRights(reader)
  const found =
    application_id === undefined ? undefined : await reader.get('application', tenant, application_id)
  const read = async (later: StoreReader): Promise<Caller> => {
    await session.requireRights(later)
    const now = await readCodeActor(session, later, readRights)
    if (now.caller === undefined || now.application?.actor.id !== found?.id) throw isGone()
    return now.caller
  }
  // The rights depend on records of many kinds, which may change at any time.
  const source = { isCurrent: () => false, read }
  if (found !== undefined) {
    const application = { ...toCaller(tenant, found, reader.now), source }
    return { caller: application, application, rights: found.id }
  }
  if (permissions.length === 0) return { caller: undefined, application: undefined, rights: undefined }
  const caller = { tenant, actor, ...decideBy({ permissions, rules: [] }), source }
  return { caller, application: undefined, rights: JSON.stringify([actor, permissions]) }
}

/** The application as a caller, without permissions if it has expired. */
function toCaller(tenant: number, application: ApplicationRecord, now: number): Caller {
  const rights = isExpired(application, now) ? { permissions: [], rules: [] } : {}
  return applicationCaller(tenant, { ...application, ...rights })
}

function isGone(): CofferError {
  return new CofferError(
    'unauthenticated',
    'The application of this code was deleted or replaced while it ran.',
  )
}

/** Adds token:create to a caller, because tokenizing the result needs no further permission. */
export function tokenizingCaller(caller: Caller): Caller {
  return deriveCaller(caller, ({ holds, holdsEverywhere, transform }) => ({
    holds: (...permissions) => permissions.includes('token:create') || holds(...permissions),
    holdsEverywhere: (permission) => permission === 'token:create' || holdsEverywhere(permission),
    transform: (permission, target) =>
      transform(permission, target) ?? (permission === 'token:create' ? 'mask' : undefined),
  }))
}
