/**
 * The state of a log sink, and the records that it has received. Every count except `behind` begins at the
 * start of this process.
 */
export interface LogSinkStatus {
  /** The address, without its query, which may contain a secret. */
  id: string
  state: 'starting' | 'working' | 'failing'
  /** How many records of the log the sink has not received, when it was counted last. */
  behind: number
  sent: number
  /** Records that were dropped because of their age while no sink was set. */
  lost: number
  failures: number
  failure?: string
  last_sent_at?: string
}

export interface LogSinkPort {
  status(): LogSinkStatus
}
