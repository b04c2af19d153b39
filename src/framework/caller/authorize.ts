/** Decides whether a caller may perform an operation. Handlers decide about the access to each token. */
import { hasEffect, type Permission } from '../../domain/access/permissions.js'
import { type Awaitable, andThen } from '../../domain/awaitable.js'
import { CofferError } from '../../errors.js'
import type { Store, StoreReader } from '../../storage/store.js'
import type { Declaration } from '../declaration.js'
import { type Caller, currentCaller } from './caller.js'

type Declared = Pick<Declaration, 'access'>

/** @throws CofferError `forbidden`. The message says what the caller lacks, for example permissions. */
export function authorize(caller: Caller, definition: Declared): void {
  const { owner, permissions, isAnyEnough = false, keyOf, refusesSessions } = definition.access
  if (owner !== undefined) requireOwner(undefined, caller)
  if (caller.session?.isAuthorized === false)
    throw new CofferError('forbidden', 'This session is not authorized yet.')
  if (keyOf !== undefined && (caller.applicationType !== keyOf || caller.session !== undefined))
    throw new CofferError('forbidden', `This requires the key of a ${keyOf} application.`)
  if (refusesSessions && caller.session !== undefined)
    throw new CofferError(
      'forbidden',
      'This requires the key of an application. The key of a session is refused.',
    )
  const effective = permissions.filter((permission) => takesEffect(permission, caller))
  const missing = permissions.filter(
    (permission) => !effective.includes(permission) || !caller.holds(permission),
  )
  if (missing.length === 0 || (isAnyEnough && caller.holds(...effective))) return
  const names = missing.join(isAnyEnough ? ' or ' : ' and ')
  throw new CofferError('forbidden', `This requires the permission ${names}.`)
}

/**
 * A session can have permissions that its public application cannot have. Therefore the type of the application does
 * not restrict a session.
 */
function takesEffect(permission: Permission, { applicationType, session }: Caller): boolean {
  return applicationType === undefined || session !== undefined || hasEffect(permission, applicationType)
}

export function requireOwner<T>(granted: T, { grants }: Caller): T {
  if (grants === undefined) return granted
  throw new CofferError('forbidden', 'Only the owner of the vault may do this.')
}

/**
 * Without this check, a reactor that calls itself would occupy all child processes.
 * @throws CofferError `forbidden`
 */
export function requireNoRun({ isOfRun }: Pick<Caller, 'isOfRun'>): void {
  if (isOfRun) throw new CofferError('forbidden', 'The key of a run cannot start another run.')
}

/**
 * Returns the caller with its current rights. Requires: `caller` was authorized with its earlier rights.
 * @throws CofferError `unauthenticated`, or `forbidden` if the caller may no longer perform the operation
 */
export function authorizeNow(caller: Caller, definition: Declared, reader: StoreReader): Awaitable<Caller> {
  return andThen(currentCaller(caller, reader), (current) => {
    if (current !== caller) authorize(current, definition)
    return current
  })
}

/**
 * If the authorization fails, the rights may be out of date. Therefore the rights are read again, and the caller is
 * authorized once more.
 * @throws CofferError `forbidden`, `unauthenticated`
 */
export function admit(store: Store, caller: Caller, definition: Declared): Awaitable<Caller> {
  try {
    authorize(caller, definition)
    return caller
  } catch (error) {
    if (caller.source === undefined) throw error
    return store.read((reader) =>
      andThen(currentCaller(caller, reader), (current) => {
        authorize(current, definition)
        return current
      }),
    )
  }
}
