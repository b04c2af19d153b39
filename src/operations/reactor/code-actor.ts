/**
 * Finds the caller that code acts as: an application, or a caller with the permissions of the runtime. Each
 * operation that the code calls is authorized with the rights at the time of the call.
 */
import { isExpired } from '../../domain/access/application.js'
import type { Permission } from '../../domain/access/permissions.js'
import { isConfigurable, type RuntimeOptions } from '../../domain/reactor/runtime.js'
import type { ApplicationRecord } from '../../domain/records/records.js'
import { CofferError } from '../../errors.js'
import { applicationCaller } from '../../framework/caller/authenticate.js'
import { type Caller, decideBy, deriveCaller } from '../../framework/caller/caller.js'
import type { Session } from '../../framework/context.js'
import type { StoreReader } from '../../storage/store.js'

/**
 * Code has the rights of the application. If there is no application, or if the image is configurable, code has the
 * `permissions` of the runtime on every container.
 */
export interface CodeRights {
  application_id?: string | undefined
  runtime?: RuntimeOptions | undefined
}

/** @throws CofferError `not_found` if the reactor or proxy was deleted */
export type ReadCodeRights = (reader: StoreReader) => Promise<CodeRights>

export interface CodeActor {
  /** The client of the code calls operations as this caller. Undefined if the code may call no operation. */
  caller: Caller | undefined
  /** The result of the code is tokenized with the rights of this application, even if `caller` has other rights. */
  application: Caller | undefined
  /** The id of the application whose rights `caller` has. Undefined if the permissions of the runtime apply. */
  actsAs: string | undefined
  /** Identifies the rights of `caller`. */
  rights: string | undefined
}

/**
 * An operation that the code calls is refused if the caller who started the code is no longer allowed to start it. The
 * operation is also refused if the application, the reactor or the proxy was deleted.
 */
export async function readCodeActor(
  session: Session,
  reader: StoreReader,
  readRights: ReadCodeRights,
): Promise<CodeActor> {
  const { tenant, actor } = session.caller
  const { application_id, runtime } = await readRights(reader)
  const found =
    application_id === undefined ? undefined : await reader.get('application', tenant, application_id)
  const actsAs = isConfigurable(runtime?.image) ? undefined : found?.id
  const readAgain = (choose: (now: CodeActor) => Caller | undefined) => ({
    // The rights are read again for each call, because they depend on records of many kinds.
    isCurrent: () => false,
    async read(later: StoreReader): Promise<Caller> {
      await session.requireRights(later)
      const chosen = choose(await readCodeActor(session, later, readRights))
      if (chosen === undefined) throw isGone()
      return chosen
    },
  })
  const source = readAgain((now) => (now.actsAs === actsAs ? now.caller : undefined))
  const application = found && {
    ...toCaller(tenant, found, reader.now),
    source: readAgain((now) => (now.application?.actor.id === found.id ? now.application : undefined)),
  }
  if (application !== undefined && actsAs !== undefined)
    return { caller: { ...application, source }, application, actsAs, rights: actsAs }
  const permissions: readonly Permission[] = runtime?.permissions ?? []
  if (permissions.length === 0) return { caller: undefined, application, actsAs, rights: undefined }
  const caller = { tenant, actor, ...decideBy({ permissions, rules: [] }), source }
  return { caller, application, actsAs, rights: JSON.stringify([actor, permissions]) }
}

/** An expired application has no permissions. */
function toCaller(tenant: number, application: ApplicationRecord, now: number): Caller {
  const rights = isExpired(application, now) ? { permissions: [], rules: [] } : {}
  return applicationCaller(tenant, { ...application, ...rights })
}

function isGone(): CofferError {
  return new CofferError(
    'unauthenticated',
    'The application or the permissions of this code were changed or removed during the run.',
  )
}

/** Adds token:create to a caller, because code is always allowed to tokenize its result. */
export function tokenizingCaller(caller: Caller): Caller {
  return deriveCaller(caller, ({ holds, holdsEverywhere, transform }) => ({
    holds: (...permissions) => permissions.includes('token:create') || holds(...permissions),
    holdsEverywhere: (permission) => permission === 'token:create' || holdsEverywhere(permission),
    transform: (permission, target) =>
      transform(permission, target) ?? (permission === 'token:create' ? 'mask' : undefined),
  }))
}
