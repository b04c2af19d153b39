import type { ExplainedDecision } from '../caller/decisions.js'
import { anyJson, count, date, enumOf, number, object, text, textMap, texts, uuid } from '../output.js'
import type { Infer } from '../schema.js'

const FAULT_KINDS = ['status', 'delay', 'drop', 'cut', 'lose', 'destination'] as const

const most = (maximum: number) => ({ type: 'integer', minimum: 1, maximum }) as const
const texts100 = {
  type: 'object',
  additionalProperties: { type: 'string', maxLength: 1000 },
  maxProperties: 20,
} as const

/** A fault of the requests that a rule applies to; `operation`, `method` and `path` restrict the rule. */
export const faultRule = {
  type: 'object',
  properties: {
    operation: { type: 'string', maxLength: 100 },
    method: { type: 'string', maxLength: 10 },
    /** `*` matches any text. */
    path: { type: 'string', maxLength: 1000 },
    /** Values of headers, and of properties of the JSON body by their dotted paths, as text. */
    headers: texts100,
    body: texts100,
    times: most(1_000_000),
    every: most(1_000_000),
    /** As the details of `control fault set` say. */
    kind: { type: 'string', enum: FAULT_KINDS },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    detail: { type: 'string', maxLength: 1000 },
    /** Seconds, of a status: the header `Retry-After`. */
    retry_after: most(86_400),
    delay_ms: most(600_000),
    bytes: { type: 'integer', minimum: 0, maximum: 1_000_000_000 },
    /** The fault of the destination: `timeout`, a status such as 502, or a time such as `30 s`. */
    destination: {},
  },
  required: [],
  additionalProperties: false,
} as const
export type FaultRule = Infer<typeof faultRule> & { kind: (typeof FAULT_KINDS)[number] }

/** A rule, and how many requests it fits and applied to. */
export type CountedRule = FaultRule & { matched: number; applied: number }

export const CLOCK_MODES = ['real', 'offset', 'frozen'] as const
export const clockOutput = object({ mode: enumOf(...CLOCK_MODES), now: date, offset_ms: { type: 'integer' } })
export type ClockState = Infer<typeof clockOutput>

export const requestOutput = object({
  method: text,
  path: text,
  'operation?': text,
  /** 0 if the connection was dropped. */
  status: count,
  'application_id?': text,
  trace_id: text,
  at: date,
  ms: number,
  /** The names of the parameters in the query. */
  'query?': texts,
  'fault?': text,
  /** For a call through a proxy: its destination without what the call added to the address, and the response. */
  'destination?': text,
  'destination_status?': count,
  'request?': anyJson('The body without its data.'),
  'answer?': anyJson('The body without its data.'),
  'decisions?': anyJson('Which access rules decided, as --explain shows it.'),
})
export type RequestRecord = Infer<typeof requestOutput> & { decisions?: ExplainedDecision[] }

export type RequestFilter = Partial<Pick<RequestRecord, 'operation' | 'method' | 'status' | 'application_id'>>

/** Requests for a path that were answered 501, because its area is not emulated. Parts of the path that may be ids are `{}`. */
export const notEmulatedOutput = object({ method: text, path: text, area: text, count })
export type NotEmulated = Infer<typeof notEmulatedOutput>

/** Its keys are by the names of the applications. */
export const forkOutput = object({
  id: uuid,
  'name?': text,
  tenant: object({ id: uuid, name: text }),
  keys: textMap,
})
export type Fork = Infer<typeof forkOutput>

/** @throws CofferError `not_found` for an unknown name or id, and for state, clock and forks of a vault not in memory */
export interface ControlPlane {
  reset(): Promise<void>
  saveSnapshot(name: string): Promise<void>
  listSnapshots(): string[]
  restoreSnapshot(name: string): Promise<void>
  deleteSnapshot(name: string): void
  /** @throws CofferError `unprocessable` beyond the limit */
  fork(name?: string): Promise<Fork>
  listForks(): Fork[]
  deleteFork(id: string): Promise<void>
  readClock(): ClockState
  /** `at`, ms since the epoch, is the time from now on; without it the present one. Does what is due. */
  setClock(mode: ClockState['mode'], at?: number): Promise<ClockState>
  /** Does what is due. */
  advanceClock(ms: number): Promise<ClockState>
  listFaults(): CountedRule[]
  setFaults(rules: readonly FaultRule[]): Promise<void>
  /** Resolves when `count` match, or after `timeoutMs` with what there is. Oldest first. */
  findRequests(filter: RequestFilter, count: number, timeoutMs: number): Promise<RequestRecord[]>
  /** In the order of the first request of each, since the start, a reset or {@link clearRequests}. */
  listNotEmulated(): NotEmulated[]
  /** Forgets the counts of {@link listNotEmulated} too. */
  clearRequests(): void
  /** Asks `isSo` again and again, until it is or the time is over. */
  waitUntil(isSo: () => Promise<boolean>, timeoutMs: number): Promise<void>
}
