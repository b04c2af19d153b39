/**
 * The pages for browsers change sessions with these functions. The pages need no API key, because nobody can guess the
 * id of a session.
 */
import type { ThreeDsSessionRecord } from '../../domain/records/records.js'
import * as states from '../../domain/threeds/session.js'
import {
  type ChallengeAnswer,
  type Challenged,
  isChallenged,
  isPending,
  openChallenge,
  settle,
} from '../../domain/threeds/session.js'
import { CofferError, conflict } from '../../errors.js'
import type { Host } from '../../framework/host.js'
import type { Waiting } from '../../framework/ports/deliveries.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'
import {
  notFound,
  notifyMethod,
  requireSession,
  storeChallenge,
  storeSession,
  type Told,
  tellBySystem,
} from './changes.js'
import { findTenant } from './place.js'

export type PageHost = Pick<Host, 'store' | 'createUuid' | 'deliveries'>

interface Found {
  tenant: number
  session: ThreeDsSessionRecord
}

/** Also finds the tenant, because the address of a page does not contain the tenant. @throws CofferError `not_found` */
export async function findSession(store: StoreReader, id: string): Promise<Found> {
  const tenant = await findTenant(store, id)
  if (tenant === undefined) throw notFound()
  return { tenant, session: settle(await requireSession(store, tenant, id), store.now) }
}

/** Repeated calls change nothing. */
export function completeMethodStep(
  host: PageHost,
  id: string,
  traceId: string,
): Promise<ThreeDsSessionRecord> {
  return changeSession(host, traceId, id, async (tools, { tenant, session }) => {
    const told = await notifyMethod(tools, tenant, session)
    return { session: told?.session ?? session, told }
  })
}

/**
 * Stores that a browser has opened the page of the challenge. The ids come from the CReq message. If the challenge has
 * already ended, nothing changes.
 * @throws CofferError `not_found` if the ids are wrong, or `conflict` if the session has no challenge for a
 * browser
 */
export function beginChallenge(
  host: PageHost,
  { id, acsTransactionId, traceId }: { id: string; acsTransactionId: string; traceId: string },
): Promise<Challenged> {
  return changeSession(host, traceId, id, async (tools, { tenant, session }) => {
    const challenged = requireChallenge(session, acsTransactionId)
    const opened = isPending(challenged) ? openChallenge(challenged) : undefined
    if (opened === undefined) return { session: challenged }
    return { session: (await storeSession(tools, tenant, opened, {})) as Challenged }
  })
}

/**
 * A wrong code ends the challenge only at the limit of attempts. After the end of a challenge, an answer changes
 * nothing.
 * @throws CofferError `not_found` if the ids are wrong, or `conflict` if nobody has opened the page of the challenge
 */
export function answerChallenge(
  host: PageHost,
  {
    id,
    acsTransactionId,
    answer,
    traceId,
  }: { id: string; acsTransactionId: string; answer: ChallengeAnswer; traceId: string },
): Promise<Challenged> {
  return changeSession(host, traceId, id, async (tools, { tenant, session }) => {
    const challenged = requireChallenge(session, acsTransactionId)
    if (!isPending(challenged)) return { session: challenged }
    if (challenged.authentication.challenge.isOpened !== true)
      throw conflict('The page of this challenge was not opened, so nobody can have answered the challenge.')
    const told = await storeChallenge(tools, tenant, states.answerChallenge(challenged, answer))
    return { session: told.session as Challenged, told }
  })
}

/** @throws CofferError `not_found` if the ids are wrong, or `conflict` if the challenge is pending */
export async function readEndedChallenge(
  { store }: Pick<Host, 'store'>,
  { id, acsTransactionId }: { id: string; acsTransactionId: string },
): Promise<Challenged> {
  const { session } = await store.read((reader) => findSession(reader, id))
  const challenged = requireChallenge(session, acsTransactionId)
  if (isPending(challenged)) throw conflict('The challenge of this session is not over.')
  return challenged
}

function requireChallenge(session: ThreeDsSessionRecord, acsTransactionId: string): Challenged {
  if (session.authentication?.acs_transaction_id !== acsTransactionId)
    throw new CofferError('not_found', 'No session has this threeDSServerTransID and this acsTransID.')
  if (isChallenged(session) && session.authentication.challenge.kind === 'browser') return session
  throw conflict('This session has no challenge for a browser.')
}

type Tools = Pick<Host, 'createUuid'> & { store: StoreWriter }

/** Changes a session in one unit of work. After the commit, webhooks get the events of the change. */
export async function changeSession<S extends ThreeDsSessionRecord>(
  { store, createUuid, deliveries }: PageHost,
  traceId: string,
  id: string,
  work: (tools: Tools, found: Found) => Promise<{ session: S; told?: Told | undefined }>,
): Promise<S> {
  const { session, waiting } = await store.write(async (writer) => {
    const tools = { store: writer, createUuid }
    const found = await findSession(writer, id)
    const { session, told } = await work(tools, found)
    const waiting: Waiting[] =
      told === undefined ? [] : await tellBySystem(tools, found.tenant, told, traceId)
    return { session, waiting }
  })
  if (waiting.length > 0) deliveries.enqueue(waiting)
  return session
}
