/** All counts except `behind` start at 0 with this process. */
export interface LogSinkStatus {
  /** The address of the sink without its query, which may contain a secret. */
  id: string
  state: 'starting' | 'working' | 'failing'
  /** The number of records that the sink had not received at the last count. */
  behind: number
  sent: number
  /** The number of records that expired while no sink was set. */
  lost: number
  failures: number
  failure?: string
  last_sent_at?: string
}

export interface LogSinkPort {
  status(): LogSinkStatus
}
