import type { Permission, Transform } from '../access/permissions.js'

export type Grants = Partial<Record<Permission, Transform>>

/** A record that a stored answer describes. If the record is deleted, the answer is deleted too. */
export interface AnswerSubject {
  kind:
    | 'token'
    | 'token_intent'
    | 'client_key'
    | 'reactor'
    | 'formula'
    | 'application'
    | 'proxy'
    | 'webhook'
    | 'invitation'
    | 'threeds_session'
    | 'account_updater_job'
    | 'merchant'
    | 'network_token'
    | 'google_pay'
    | 'apple_pay'
    | 'wallet_merchant'
    | 'wallet_certificate'
    | 'document'
  id: string
  /** Only for a token: the grants of the caller when the answer was stored. */
  granted?: Grants | undefined
}

/** The id is a keyed digest of the caller, the method, the path and the idempotency key. */
export interface AnswerRecord {
  id: string
  status: number
  headers?: { 'content-type'?: string; location?: string } | undefined
  body?: string | undefined
  /**
   * The store indexes only the first {@link SUBJECTS_OF_ROW} subjects. Additional records with `part_of` index the
   * other subjects.
   */
  subjects: AnswerSubject[]
  part_of?: string
  /**
   * Present while a request or run is in progress. `by`: the process. `until`: the end of the claim, in ms since the
   * epoch.
   */
  claim?: { by: string; until: number }
}
