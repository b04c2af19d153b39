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

export interface ThreeDsResult {
  status: Status
  reason?: StatusReason
  cancelled?: CancelReason
}

/** A challenge is pending until `ended` is set. */
export interface ThreeDsChallenge {
  /** `decoupled`: the bank reaches the cardholder without a browser. */
  kind: Device | 'decoupled'
  type: ChallengeType
  isMandated: boolean
  /** When a challenge without an answer ends, in ms since the epoch. */
  until: number
  /** The id of the timer record that ends a decoupled challenge. */
  timer?: string
  isOpened?: true
  /** How many answers the cardholder has given. */
  attempts: number
  ended?: ThreeDsResult
  /**
   * `decision`: the operation `3ds decide` ended the challenge. `setting`: the setting `threeds.challenges` ended the
   * challenge.
   */
  endedBy?: 'cardholder' | 'decision' | 'clock' | 'setting'
}

export interface ThreeDsAuthentication {
  acs_transaction_id: string
  ds_transaction_id: string
  brand?: BrandName
  challenge_preference?: ChallengePreference
  /** Displayed on the page of the challenge. */
  paid?: { merchant?: string; amount?: string; currency?: string; exponent?: string }
  first: ThreeDsResult
  challenge?: ThreeDsChallenge
  /** Whether a caller has retrieved the result of the challenge. From then on, the session has this result. */
  isFinal?: true
}

/** Contains no card number. Until the session is authenticated, the record expires at `expires_at`. */
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
  /** The scheme, host and path prefix of the pages of the session, as in the request that created the session. */
  base: string
  expires_at?: string
  /** Absent if the session has no method step. */
  method?: 'waiting' | 'done'
  /**
   * A page of this server authenticates the session with `request`, and then redirects the browser to one of the
   * `callback_urls`.
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

/** Stored under tenant number 0, because the pages of a session do not name the tenant. */
export interface ThreeDsPlaceRecord {
  /** The id of the session. */
  id: string
  tenant: number
}
