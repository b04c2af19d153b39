import type { ExplainedDecision } from '../caller/decisions.js'
import { anyJson, count, date, enumOf, number, object, text, textMap, texts, uuid } from '../output.js'
import type { Infer } from '../schema.js'

const FAULT_KINDS = ['status', 'delay', 'drop', 'cut', 'lose', 'destination', 'provision'] as const

const most = (maximum: number) => ({ type: 'integer', minimum: 1, maximum }) as const
const texts100 = {
  type: 'object',
  additionalProperties: { type: 'string', maxLength: 1000 },
  maxProperties: 20,
} as const

export const faultRule = {
  type: 'object',
  properties: {
    operation: { type: 'string', maxLength: 100 },
    method: { type: 'string', maxLength: 10 },
    path: { type: 'string', maxLength: 1000 },
    /**
     * The fault applies only to requests with these headers (`headers`) and these properties of the JSON body (`body`).
     * All values are text. The key of a property is its dotted path.
     */
    headers: texts100,
    body: texts100,
    times: most(1_000_000),
    every: most(1_000_000),
    kind: { type: 'string', enum: FAULT_KINDS },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    detail: { type: 'string', maxLength: 1000 },
    retry_after: most(86_400),
    delay_ms: most(600_000),
    /** Only for the kind `provision`: the error code with which a build of code fails. */
    error_code: { type: 'string', minLength: 1, maxLength: 100 },
    error_message: { type: 'string', maxLength: 1000 },
    error_details: {},
    bytes: { type: 'integer', minimum: 0, maximum: 1_000_000_000 },
    /**
     * Only for calls through a proxy. The destination fails with `timeout`, a status such as 502, or a delay such as
     * `30 s`.
     */
    destination: {},
  },
  required: [],
  additionalProperties: false,
} as const
export type FaultRule = Infer<typeof faultRule> & { kind: (typeof FAULT_KINDS)[number] }

export type CountedRule = FaultRule & { matched: number; applied: number }

export const CLOCK_MODES = ['real', 'offset', 'frozen'] as const
export const clockOutput = object({ mode: enumOf(...CLOCK_MODES), now: date, offset_ms: { type: 'integer' } })
export type ClockState = Infer<typeof clockOutput>

export const requestOutput = object({
  method: text,
  path: text,
  'operation?': text,
  status: count,
  'application_id?': text,
  /**
   * Absent if an API key was accepted. `none`: the header contains no key. `unknown`: no application has the key.
   * `not_examined`: the answer did not depend on the key.
   */
  'key_state?': enumOf('none', 'unknown', 'not_examined'),
  /** The name of the header with the API key, such as `SVC-API-KEY`. */
  'key_header?': text,
  trace_id: text,
  at: date,
  ms: number,
  'query?': texts,
  'fault?': text,
  /** Only for a call through a proxy. `destination` does not contain the path of the call. */
  'destination?': text,
  'destination_status?': count,
  /** Only for a call through a proxy: the header that names the proxy or the destination, such as `SVC-PROXY-URL`. */
  'proxy_header?': text,
  'request?': anyJson('The body without its data.'),
  'answer?': anyJson('The body without its data.'),
  'decisions?': anyJson('The decisions of the access rules, as in the output of --explain.'),
})
export type RequestRecord = Infer<typeof requestOutput> & { decisions?: ExplainedDecision[] }

export type RequestFilter = Partial<Pick<RequestRecord, 'operation' | 'method' | 'status' | 'application_id'>>

/**
 * Requests that the server answered with 501, because their areas are not emulated. In `path`, `{}` replaces each part
 * that may be an id.
 */
export const notEmulatedOutput = object({ method: text, path: text, area: text, count })
export type NotEmulated = Infer<typeof notEmulatedOutput>

export const forkOutput = object({
  id: uuid,
  'name?': text,
  tenant: object({ id: uuid, name: text }),
  keys: textMap,
})
export type Fork = Infer<typeof forkOutput>

/**
 * @throws CofferError `not_found` for an unknown name or id, and for calls about state, clock or forks if the vault is
 * not in memory
 */
export interface ControlPlane {
  reset(): Promise<void>
  saveSnapshot(name: string): Promise<void>
  listSnapshots(): string[]
  restoreSnapshot(name: string): Promise<void>
  deleteSnapshot(name: string): void
  fork(name?: string): Promise<Fork>
  listForks(): Fork[]
  deleteFork(id: string): Promise<void>
  readClock(): ClockState
  /** `at`: ms since the epoch, by default the real time. Also runs the work that is due at the new time. */
  setClock(mode: ClockState['mode'], at?: number): Promise<ClockState>
  advanceClock(ms: number): Promise<ClockState>
  listFaults(): CountedRule[]
  setFaults(rules: readonly FaultRule[]): Promise<void>
  /**
   * Resolves when `count` requests match, or after `timeoutMs`. Returns the matching requests in the order of their
   * arrival.
   */
  findRequests(filter: RequestFilter, count: number, timeoutMs: number): Promise<RequestRecord[]>
  listNotEmulated(): NotEmulated[]
  clearRequests(): void
  waitUntil(isSo: () => Promise<boolean>, timeoutMs: number): Promise<void>
}
