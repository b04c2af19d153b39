/** The answer that is stored for an idempotency key. */
import type { Permission, Transform } from './permissions.js'

/** The grants of a caller on the containers of a token. */
export type Grants = Partial<Record<Permission, Transform>>

/** Something that an answer is about. The answer goes with it. */
export interface AnswerSubject {
  kind: 'token' | 'reactor' | 'application'
  id: string
  /** Of a token: when the answer was kept. */
  granted?: Grants | undefined
}

/** The id is a keyed digest of the caller, the method, the path and the idempotency key. */
export interface AnswerRecord {
  id: string
  status: number
  /** Of an answer that code or another server made: its content type. */
  headers?: { 'content-type'?: string } | undefined
  /** JSON text; absent without a body. */
  body?: string | undefined
  /** Those that one record can be found by; further ones are in records of their own. */
  subjects: AnswerSubject[]
  /** The number of these further records. */
  parts?: number
  /** Of such a record: the id of the answer. */
  part_of?: string
  /** Of a request or run that has not ended: who has claimed it, and until when, ms since the epoch. */
  claim?: { by: string; until: number }
}
