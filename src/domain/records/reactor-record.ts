import type { SentError } from '../../errors.js'
import type { CodeAnswer } from '../proxy/code-answer.js'
import type { Printed } from '../reactor/printed.js'
import type { RuntimeOptions } from '../reactor/runtime.js'
import type { Requested } from '../reactor/state.js'
import type { TenantEntity } from './token-record.js'

/** If the application with the id `application_id` no longer exists, the reactor acts for no application. */
export interface ReactorRecord extends TenantEntity, ReactorVersion {
  name: string
  application_id?: string
  /**
   * The version that was requested last. Absent if the record already has the attributes of the version that was
   * requested last.
   */
  requested?: Requested<ReactorVersion>
}

/** The attributes of a reactor that are built together as one version. */
export interface ReactorVersion {
  formula_id?: string
  code?: string
  runtime?: RuntimeOptions
  configuration: Record<string, string>
}

/**
 * A run of a reactor. Only the owner of the vault may read the record of a run, because console and stack can contain
 * the data of tokens.
 */
export interface ReactorRunRecord {
  id: string
  reactor_id: string
  outcome: string
  status: number
  detail?: string
  errors?: Record<string, string[]>
  duration_ms: number
  memory_mib: number
  console: { level: string; text: string }[]
  stack?: string
  /** Console, detail, errors and stack, with the data of the run redacted. Absent if the run has no output. */
  scrubbed?: Printed
  created_at: string
  trace_id: string
}

/**
 * The result of an asynchronous run, which the caller gets later. The record of a result expires one day after it was
 * written.
 */
export interface ReactorResultRecord {
  id: string
  reactor_id: string
  /** The type and id of the caller, and its session. No other caller may read the result. */
  started_by: string
  created_at: string
  /**
   * Absent until the run ends. After the end of the run, `ended` has one of the members `error`, `res` (an HTTP
   * answer) and `result`.
   */
  ended?: { error?: SentError; res?: CodeAnswer; result?: unknown }
}

/**
 * The answer of a run that is sent to the `callback_url` of its call. The record is removed after the last attempt to
 * send the answer.
 */
export interface CallbackRecord {
  id: string
  reactor_id: string
  url: string
  content_type: string
  body: string
  state: 'waiting'
  attempts: number
  due_at: string
  created_at: string
  /** The record expires at this time, in ms since the epoch. */
  expires: number
  /** Absent if an earlier version wrote the record. */
  trace_id?: string
}
