import type { Permission, Transform } from '../access/permissions.js'

export type Grants = Partial<Record<Permission, Transform>>

/**
 * A record that the stored answer to an idempotent request describes. Deleting the record deletes the answer.
 */
export interface AnswerSubject {
  kind: 'token' | 'token_intent' | 'reactor' | 'formula' | 'application' | 'proxy' | 'webhook' | 'invitation'
  id: string
  /** For a token: the caller's grants when the answer was stored. */
  granted?: Grants | undefined
}

/** The id is a keyed digest of the caller, the method, the path and the idempotency key. */
export interface AnswerRecord {
  id: string
  status: number
  headers?: { 'content-type'?: string; location?: string } | undefined
  body?: string | undefined
  /** Only the first {@link SUBJECTS_OF_ROW} are indexed. Further records index the others. */
  subjects: AnswerSubject[]
  part_of?: string
  /**
   * While the request or run is in progress: its claimant, and the end of the claim in ms since the epoch.
   */
  claim?: { by: string; until: number }
}
