/**
 * Pure functions that change a session of 3-D Secure. Each function returns the changed record.
 *
 * created → (method step done) → authenticated → for a challenge: pending → ended → final
 */
import { conflict } from '../../errors.js'
import type {
  ThreeDsAuthentication,
  ThreeDsChallenge,
  ThreeDsResult,
  ThreeDsSessionRecord,
} from '../records/threeds-record.js'
import type { BrandName, ChallengePreference, FinalStatus } from './enumerations.js'
import { REASONS, scenarioOf } from './scenarios.js'

const MINUTE_MS = 60_000
/**
 * A session that is not authenticated expires together with its token, or after this time if the token does not expire.
 */
export const SESSION_MS = 60 * MINUTE_MS
export const CHALLENGE_MS = 10 * MINUTE_MS
export const DECOUPLED_MS = MINUTE_MS
export const MAX_ATTEMPTS = 3
export const CHALLENGE_CODE = '1234'

export const OUTCOMES = [
  'successful',
  'attempted',
  'failed',
  'unavailable',
  'rejected',
  'cancelled',
  'timed-out',
] as const
export type Outcome = (typeof OUTCOMES)[number]

/** `done`: the cardholder has answered in another app (out of band). */
export type ChallengeAnswer = { code: string } | 'done' | 'cancel'

type Session = ThreeDsSessionRecord
export type Authenticated = Session & { authentication: ThreeDsAuthentication }
export type Challenged = Session & { authentication: ThreeDsAuthentication & { challenge: ThreeDsChallenge } }

export interface AuthenticationWishes {
  brand?: BrandName | undefined
  challenge_preference?: ChallengePreference | undefined
  /** The default is true for a merchant and false for a customer. */
  request_decoupled_challenge?: boolean | undefined
  paid?: ThreeDsAuthentication['paid'] | undefined
}

export function isAuthenticated(session: Session): session is Authenticated {
  return session.authentication !== undefined
}

export function isChallenged(session: Session): session is Challenged {
  return session.authentication?.challenge !== undefined
}

export function completeMethod(session: Session): Session | undefined {
  return session.method === 'waiting' ? { ...session, method: 'done' } : undefined
}

export function authenticate(
  session: Session,
  { brand, challenge_preference, request_decoupled_challenge, paid }: AuthenticationWishes,
  ids: Pick<ThreeDsAuthentication, 'acs_transaction_id' | 'ds_transaction_id'>,
  now: number,
): Authenticated {
  if (isAuthenticated(session))
    throw conflict('This session is authenticated already. Create another session.')
  const authentication: ThreeDsAuthentication = {
    ...ids,
    ...(brand && { brand }),
    ...(challenge_preference && { challenge_preference }),
    ...(paid && { paid }),
    ...decideFirst(session, request_decoupled_challenge ?? session.type === 'merchant', now),
  }
  const { expires_at: _, ...rest } = session
  return { ...rest, authentication }
}

function decideFirst(
  session: Session,
  isDecoupled: boolean,
  now: number,
): Pick<ThreeDsAuthentication, 'first' | 'challenge'> {
  const { challenge: type, final, isMandated = false } = scenarioOf(session.scenario)
  if (type === undefined) return { first: resultOf(final ?? 'unavailable') }
  if (isDecoupled)
    return {
      first: { status: 'decoupled_challenge' },
      challenge: { kind: 'decoupled', type: 'decoupled', isMandated, until: now + DECOUPLED_MS, attempts: 0 },
    }
  if (session.type === 'merchant')
    return { first: { status: 'failed', reason: 'decoupled-authentication-required' } }
  const kind = session.device ?? 'browser'
  return {
    first: { status: 'challenge' },
    challenge: { kind, type, isMandated, until: now + CHALLENGE_MS, attempts: 0 },
  }
}

function resultOf(status: FinalStatus): ThreeDsResult {
  const reason = REASONS[status]
  return { status, ...(reason && { reason }) }
}

function usualResult({ scenario }: Session): ThreeDsResult {
  return resultOf(scenarioOf(scenario).final ?? 'unavailable')
}

function resultOfOutcome(session: Challenged, outcome: Outcome): ThreeDsResult {
  if (outcome === 'cancelled') return { status: 'failed', cancelled: 'cardholder-canceled' }
  if (outcome === 'timed-out') return timedOut(session.authentication.challenge)
  return resultOf(outcome)
}

function timedOut({ kind, isOpened }: ThreeDsChallenge): ThreeDsResult {
  if (kind === 'decoupled')
    return { status: 'failed', reason: 'decoupled-authentication-timeout', cancelled: 'acs-timeout' }
  const cancelled = isOpened ? 'acs-timeout' : 'acs-timeout-request-not-received'
  return { status: 'failed', reason: 'timeout-at-acs', cancelled }
}

function change(session: Challenged, challenge: Partial<ThreeDsChallenge>): Challenged {
  const { authentication } = session
  return {
    ...session,
    authentication: { ...authentication, challenge: { ...authentication.challenge, ...challenge } },
  }
}

/** Ends a challenge whose time is over at `now`. Any other session is returned unchanged. */
export function settle(session: Session, now: number): Session {
  if (!isChallenged(session)) return session
  const { challenge } = session.authentication
  if (challenge.ended !== undefined || now < challenge.until) return session
  const ended = challenge.kind === 'decoupled' ? usualResult(session) : timedOut(challenge)
  return change(session, { ended, endedBy: 'clock' })
}

/** Requires: {@link settle} has returned the session. */
export function isPending(session: Session): session is Challenged {
  return isChallenged(session) && session.authentication.challenge.ended === undefined
}

export function isFinal({ authentication }: Session): boolean {
  return authentication?.isFinal === true
}

export function openChallenge(session: Challenged): Challenged | undefined {
  return session.authentication.challenge.isOpened ? undefined : change(session, { isOpened: true })
}

export function decide(
  session: Session,
  outcome?: Outcome,
  endedBy: ThreeDsChallenge['endedBy'] = 'decision',
): Challenged {
  if (!isPending(session)) throw conflict('No challenge of this session waits for a decision.')
  const ended = outcome === undefined ? usualResult(session) : resultOfOutcome(session, outcome)
  return change(session, { ended, endedBy })
}

export function answerChallenge(session: Session, answer: ChallengeAnswer): Challenged {
  if (!isPending(session)) throw conflict('No challenge of this session waits for an answer.')
  const endedBy = 'cardholder'
  if (answer === 'cancel') return decide(session, 'cancelled', endedBy)
  const { type, attempts: before } = session.authentication.challenge
  const attempts = before + 1
  const isRight = answer === 'done' ? type === 'out-of-band' : answer.code.trim() === CHALLENGE_CODE
  if (isRight) return change(session, { attempts, ended: usualResult(session), endedBy })
  if (attempts < MAX_ATTEMPTS) return change(session, { attempts })
  const ended = { status: 'failed', reason: 'max-challenges-exceeded' } as const
  return change(session, { attempts, ended, endedBy })
}

export function retrieveResult(session: Session): Challenged {
  if (!isAuthenticated(session)) throw conflict('This session is not authenticated, so it has no challenge.')
  if (!isChallenged(session)) throw conflict('This session was authenticated without a challenge.')
  const { authentication } = session
  if (authentication.challenge.ended === undefined) throw conflict('The challenge is not over.')
  return { ...session, authentication: { ...authentication, isFinal: true } }
}

/** Web pages and events distinguish only these two statuses. */
export function toldStatus({ authentication }: Challenged): 'successful' | 'failed' {
  const { status } = authentication.challenge.ended ?? {}
  return status === 'successful' || status === 'attempted' ? 'successful' : 'failed'
}

/** Until the result of the challenge is retrieved, returns the result of `authenticate`. */
export function shownResult({ first, challenge, isFinal }: ThreeDsAuthentication): ThreeDsResult {
  return (isFinal && challenge?.ended) || first
}
