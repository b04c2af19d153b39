/**
 * The redirect page authenticates a session with the stored request, and then sends the browser to one of the stored
 * addresses.
 */
import type { ThreeDsSessionRecord } from '../../domain/records/records.js'
import type { AuthenticationRequest } from '../../domain/threeds/request.js'
import { BROWSER_INFO, keepDeviceInfo, OPTIONAL_BROWSER_INFO } from '../../domain/threeds/request.js'
import {
  isAuthenticated,
  isChallenged,
  isFinal,
  isPending,
  retrieveResult,
  shownResult,
} from '../../domain/threeds/session.js'
import { CofferError, conflict } from '../../errors.js'
import { authorize } from '../../framework/caller/authorize.js'
import type { Caller } from '../../framework/caller/caller.js'
import { requires } from '../../framework/declaration.js'
import type { Host } from '../../framework/host.js'
import { readWishes, refuseAtAuthentication } from './authenticate-session.js'
import { notFound, startAuthentication, storeSession } from './changes.js'
import { changeSession, findSession, type PageHost } from './pages.js'

type Redirect = NonNullable<ThreeDsSessionRecord['redirect']>
export type RedirectSession = ThreeDsSessionRecord & { redirect: Redirect }

/** @throws CofferError `not_found`, `unauthenticated` if the caller has no public key that can create this session */
export async function openRedirect(
  { store }: Pick<Host, 'store'>,
  id: string,
  findCaller: (() => Promise<Caller>) | undefined,
): Promise<RedirectSession> {
  const { tenant, session } = await store.read((reader) => findSession(reader, id))
  const found = requireRedirect(session)
  if (findCaller !== undefined) refuseKey(await findCaller(), tenant)
  return found
}

function refuseKey(caller: Caller, tenant: number): void {
  try {
    authorize(caller, { access: requires('3ds:session:create') })
    if (caller.tenant === tenant && caller.applicationType === 'public') return
  } catch (error) {
    if (!(error instanceof CofferError) || error.code !== 'forbidden') throw error
  }
  throw new CofferError('unauthenticated', 'The apiKey is not a public key that may create this session.')
}

/**
 * Repeated calls change nothing. `deviceInfo`: the properties of the browser that the page has collected.
 * @throws CofferError `not_found`, `threeds_failed`
 */
export function authenticateByPage(
  host: PageHost,
  { id, deviceInfo, traceId }: { id: string; deviceInfo: Record<string, unknown>; traceId: string },
): Promise<RedirectSession> {
  return changeSession(host, traceId, id, async (tools, { tenant, session }) => {
    const found = requireRedirect(session)
    if (isAuthenticated(found)) return { session: found }
    refuseAtAuthentication(found)
    const kept = keepDeviceInfo(deviceInfo, [...BROWSER_INFO, ...OPTIONAL_BROWSER_INFO])
    const described = { ...found, device_info: { ...kept, ...found.device_info } }
    // The request was checked when the session was created.
    const wishes = readWishes(found, found.redirect.request as unknown as AuthenticationRequest)
    const told = await startAuthentication(tools, tenant, described, wishes)
    return { session: requireRedirect(told.session), told }
  })
}

/**
 * Makes the result of the challenge final, as if the backend of the merchant had retrieved the result. Does not change
 * a session with a decoupled challenge.
 * @throws CofferError `not_found`, `conflict` if the session is not authenticated or a browser challenge is not over
 */
export function finishByPage(
  host: PageHost,
  { id, traceId }: { id: string; traceId: string },
): Promise<RedirectSession> {
  return changeSession(host, traceId, id, async (tools, { tenant, session }) => {
    const found = requireRedirect(session)
    if (!isAuthenticated(found)) throw conflict('This session is not authenticated.')
    if (isDecoupled(found) || !isChallenged(found) || isFinal(found)) return { session: found }
    if (isPending(found)) throw conflict('The challenge of this session is not over.')
    return { session: requireRedirect(await storeSession(tools, tenant, retrieveResult(found), {})) }
  })
}

/** A decoupled challenge needs no browser, so the page does not wait for the end of the challenge. */
export function isDecoupled(session: ThreeDsSessionRecord): boolean {
  return session.authentication?.challenge?.kind === 'decoupled'
}

/** Whether the page sends the browser to the address for success. */
export function hasSucceeded({ authentication }: ThreeDsSessionRecord): boolean {
  if (authentication === undefined) return false
  const { status } = shownResult(authentication)
  return status === 'successful' || status === 'attempted'
}

function requireRedirect(session: ThreeDsSessionRecord): RedirectSession {
  if (session.redirect !== undefined) return session as RedirectSession
  throw notFound()
}
