import type { SentError } from '../../errors.js'
import type { CodeAnswer } from '../proxy/code-answer.js'
import type { Printed } from '../reactor/printed.js'
import type { RuntimeOptions } from '../reactor/runtime.js'
import type { Requested } from '../reactor/state.js'
import type { TenantEntity } from './token-record.js'

/** If the application no longer exists, the reactor acts for no application. */
export interface ReactorRecord extends TenantEntity, ReactorVersion {
  name: string
  application_id?: string
  /** Present only if the build of the newest version takes time or fails. */
  requested?: Requested<ReactorVersion>
}

export interface ReactorVersion {
  formula_id?: string
  code?: string
  runtime?: RuntimeOptions
  configuration: Record<string, string>
}

/** Only the owner of the vault may read this record, because console and stack can contain the data of tokens. */
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

/** The result of an asynchronous run. The record expires one day after it was written. */
export interface ReactorResultRecord {
  id: string
  reactor_id: string
  /** The caller that started the run: type, id and session. No other caller may read the result. */
  started_by: string
  created_at: string
  /** Absent until the run ends. Contains one of these members. `res`: an HTTP answer. */
  ended?: { error?: SentError; res?: CodeAnswer; result?: unknown }
}

/** An answer for the `callback_url` of a call. The record is removed after the last attempt to send the answer. */
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
  /** In ms since the epoch. */
  expires: number
  /** Absent if an earlier version wrote the record. */
  trace_id?: string
}
