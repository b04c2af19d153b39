/**
 * What the pages for browsers do with a session. They have no API key: the unguessable id of the session is their right. Each
 * function is one unit of work. The pages themselves only decode forms and write HTML.
 */
import type { ThreeDsSessionRecord } from '../../domain/records/records.js'
import * as states from '../../domain/threeds/session.js'
import {
  type ChallengeAnswer,
  type Challenged,
  isPending,
  openChallenge,
  settle,
} from '../../domain/threeds/session.js'
import { conflict } from '../../errors.js'
import type { Host } from '../../framework/host.js'
import type { Waiting } from '../../framework/ports/deliveries.js'
import { readAll, type StoreReader, type StoreWriter } from '../../storage/store.js'
import {
  notFound,
  notifyMethod,
  storeChallenge,
  storeSession,
  THREE_DS,
  type Told,
  tellBySystem,
} from './changes.js'

type PageHost = Pick<Host, 'store' | 'createUuid' | 'deliveries'>

interface Found {
  tenant: number
  session: ThreeDsSessionRecord
}

/** Finds the session in all tenants, because a page does not name its tenant. @throws CofferError `not_found` */
export async function findSession(store: StoreReader, id: string): Promise<Found> {
  for (const { number: tenant } of await readAll(store, 'tenant', 0)) {
    const session = await store.get(THREE_DS, tenant, id)
    if (session !== undefined) return { tenant, session: settle(session, store.now) }
  }
  throw notFound()
}

/** Marks the method step as done. Repeated calls change nothing. */
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
 * Opens the page of the challenge with the ids of the CReq message.
 * @throws CofferError `not_found` if the ids are wrong, or `conflict` if no challenge is pending
 */
export function beginChallenge(
  host: PageHost,
  { id, acsTransactionId, traceId }: { id: string; acsTransactionId: string; traceId: string },
): Promise<ThreeDsSessionRecord> {
  return changeSession(host, traceId, id, async (tools, { tenant, session }) => {
    const pending = requirePending(session, acsTransactionId)
    const opened = openChallenge(pending)
    return { session: opened === undefined ? pending : await storeSession(tools, tenant, opened, {}) }
  })
}

/**
 * Applies what the cardholder does. After a wrong code the challenge is still pending.
 * @throws CofferError `not_found` if the ids are wrong, or `conflict` if no challenge is pending
 */
export function answerChallenge(
  host: PageHost,
  {
    id,
    acsTransactionId,
    answer,
    traceId,
  }: { id: string; acsTransactionId: string; answer: ChallengeAnswer; traceId: string },
): Promise<ThreeDsSessionRecord> {
  return changeSession(host, traceId, id, async (tools, { tenant, session }) => {
    const pending = requirePending(session, acsTransactionId)
    const told = await storeChallenge(tools, tenant, states.answerChallenge(pending, answer))
    return { session: told.session, told }
  })
}

function requirePending(session: ThreeDsSessionRecord, acsTransactionId: string): Challenged {
  const { authentication } = session
  if (authentication?.acs_transaction_id !== acsTransactionId) throw notFound()
  if (isPending(session) && session.authentication.challenge.kind === 'browser') return session
  throw conflict('No challenge of this session waits for an answer.')
}

type Tools = Pick<Host, 'createUuid'> & { store: StoreWriter }

async function changeSession(
  { store, createUuid, deliveries }: PageHost,
  traceId: string,
  id: string,
  work: (tools: Tools, found: Found) => Promise<{ session: ThreeDsSessionRecord; told?: Told | undefined }>,
): Promise<ThreeDsSessionRecord> {
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
