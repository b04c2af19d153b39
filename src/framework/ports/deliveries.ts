/**
 * An entry of the delivery queue: mail, an event, a callback, a job, a change of a network token, or a whole lane. The
 * deliveries of one lane, such as a webhook, are sent one after another.
 */
export type Waiting = WaitingRecord | WaitingBatch | Lane

/** A lane that is enqueued: every delivery that waits in this lane is tried again. */
export interface Lane {
  readonly kind: 'mail' | 'delivery' | 'callback' | 'account_updater_job' | 'network_token'
  readonly tenant: number
  readonly lane: string
}

export interface WaitingRecord extends Lane {
  readonly id: string
}

export interface WaitingBatch extends Lane {
  readonly batch: { readonly id: string; readonly count: number }
}

export interface DeliveryPort {
  /** The URL of the vault's server. Links in mail begin with this URL. Undefined if no server runs. */
  readonly publicUrl: string | undefined
  enqueue(waiting: readonly Waiting[]): void
  /** A number that changes when something is enqueued in the lane. */
  changesOf(lane: Lane): number
  /**
   * Resolves when `changesOf` differs from `since`, after `ms`, or when the server stops. The result is the time that
   * has passed, in ms. The call shows that the lane has a listener (see `silenceOf`).
   */
  awaitChange(lane: Lane, since: number, ms: number): Promise<number>
  /**
   * Returns how many ms ago a listener of the lane last waited in this process (see `awaitChange`), or 0 while a
   * listener waits. Returns undefined if no listener has waited in this process.
   */
  silenceOf(lane: Lane): number | undefined
  /**
   * Resolves when each delivery that was enqueued before this call has been attempted once, or cannot be
   * attempted now.
   */
  settle(): Promise<void>
}
