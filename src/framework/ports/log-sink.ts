/**
 * The state of a log sink, and the records that it has received. Every count except `behind` is 0 when this
 * process starts.
 */
export interface LogSinkStatus {
  /** The address of the sink. The query of the address is left out, because the query may contain a secret. */
  id: string
  state: 'starting' | 'working' | 'failing'
  /** The number of log records that the sink had not received at the last count. */
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
