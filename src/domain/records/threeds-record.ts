import type {
  BrandName,
  CancelReason,
  ChallengePreference,
  ChallengeType,
  Device,
  SessionType,
  Status,
  StatusReason,
} from '../threeds/enumerations.js'
import type { ScenarioName } from '../threeds/scenarios.js'
import type { TenantEntity } from './token-record.js'

/** The result of an authentication, as answers show it. */
export interface ThreeDsResult {
  status: Status
  reason?: StatusReason
  cancelled?: CancelReason
}

/** The challenge of a session. A challenge is pending until `ended` is set. */
export interface ThreeDsChallenge {
  /** `decoupled`: the bank reaches the cardholder without a browser. */
  kind: Device | 'decoupled'
  type: ChallengeType
  isMandated: boolean
  /** The time at which a challenge without an answer ends, in ms since the epoch. */
  until: number
  /** The id of the timer record, which ends a decoupled challenge. */
  timer?: string
  /** Whether the browser has opened the page of the challenge. */
  isOpened?: true
  /** How many answers the cardholder has given. */
  attempts: number
  ended?: ThreeDsResult
  /**
   * The caller who ended the challenge. `decision`: a test, or a person in the dashboard, has decided the
   * challenge without the page of the bank. `setting`: the setting `threeds.challenges`.
   */
  endedBy?: 'cardholder' | 'decision' | 'clock' | 'setting'
}

export interface ThreeDsAuthentication {
  acs_transaction_id: string
  ds_transaction_id: string
  brand?: BrandName
  challenge_preference?: ChallengePreference
  /** What the page of the challenge shows. */
  paid?: { merchant?: string; amount?: string; currency?: string; exponent?: string }
  /** The result that `authenticate` answered. */
  first: ThreeDsResult
  challenge?: ThreeDsChallenge
  /** Whether the result of the challenge was retrieved. After that, the session shows the result of the challenge. */
  isFinal?: true
}

/**
 * A session of 3-D Secure. The record contains no card number. Until the session is authenticated, the record expires
 * at `expires_at`. An authenticated session has no expiry.
 */
export interface ThreeDsSessionRecord extends TenantEntity {
  type: SessionType
  device?: Device
  device_info?: Record<string, unknown>
  web_challenge_mode?: 'iframe' | 'redirect'
  metadata?: Record<string, string>
  token_id?: string
  token_intent_id?: string
  brands: readonly BrandName[]
  scenario: ScenarioName
  /**
   * The beginning of the address of each page of the session. It is the scheme, host and path prefix of the request that
   * created the session.
   */
  base: string
  expires_at?: string
  /** The state of the method step. Absent if the session has no method step. */
  method?: 'waiting' | 'done'
  /**
   * A page of this server authenticates the session with this request, and then redirects the browser to one
   * of the addresses.
   */
  redirect?: {
    request: Record<string, unknown>
    callback_urls: { success: string; failure: string; hides_branding?: boolean }
  }
  authentication?: ThreeDsAuthentication
}

/** When this record expires, the sweep ends the decoupled challenge of the session. */
export interface ThreeDsTimerRecord {
  id: string
  session_id: string
}

/** The tenant of a session, stored under tenant number 0, because the pages of the session do not name the tenant. */
export interface ThreeDsPlaceRecord {
  /** The id of the session. */
  id: string
  tenant: number
}
