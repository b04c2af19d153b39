/** An entry of the delivery queue. The deliveries of one lane, such as a webhook, are sent one after another. */
export type Waiting = WaitingRecord | WaitingBatch | Lane

/** If a lane itself is an entry, every waiting delivery of the lane is tried again. */
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
  /** The URL of the server, with which links in mail begin. Undefined if no server runs. */
  readonly publicUrl: string | undefined
  enqueue(waiting: readonly Waiting[]): void
  /** Returns a number that changes when something is enqueued in the lane. */
  changesOf(lane: Lane): number
  /**
   * Resolves when `changesOf` differs from `since`, after `ms`, or when the server stops. Returns the time that has
   * passed, in ms. The caller counts as a listener (see `silenceOf`).
   */
  awaitChange(lane: Lane, since: number, ms: number): Promise<number>
  /**
   * Returns how many ms ago a listener last waited in this process (see `awaitChange`), or 0 while a listener waits.
   * Returns undefined if no listener has waited.
   */
  silenceOf(lane: Lane): number | undefined
  /** Resolves when each delivery that was enqueued before has been attempted once, or cannot be attempted now. */
  settle(): Promise<void>
}
