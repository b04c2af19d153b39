/** Answers of the server of the page. */
import type { Transform } from '../../domain/access/permissions.js'
import type { ExplainedDecision } from '../caller/decisions.js'
import type { ClockState, RequestRecord } from './control.js'

export interface PageSession {
  is_signed_in: true
  version: string
  /** The address of the vault. */
  place: string
  seed?: string
  permissions: string[]
  /** The name of the header with an API key. */
  header: string
  tenants: { id: string; name: string }[]
  controls: { faults: boolean; state: boolean }
}

export interface Facts {
  counts: Record<'tokens' | 'applications' | 'reactors' | 'outbox', number>
  /** Oldest first. */
  applications: { id: string; name: string; type: string }[]
  /** The names of those who act, by their ids. */
  actors: Record<string, string>
}

/** News since the page asked last. `facts` only if a record has changed, so that `version` differs. */
export interface News {
  /** The number of requests so far, and the number of those before the first that is kept. */
  count: number
  first: number
  records: RequestRecord[]
  /** The clock of the vault, ms since the epoch. */
  now: number
  clock?: ClockState
  faults: number
  forks: { id: string; name?: string; requests: number }[]
  version: string
  facts?: Facts
}

/** Whether an application has a permission on a token or a container, and why. */
export interface Access {
  application_id: string
  transform?: Transform
  decisions: ExplainedDecision[]
}
