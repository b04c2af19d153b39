/**
 * Mail and events that wait for delivery. The deliveries of one lane, such as a webhook, are sent one after
 * another.
 */
export type Waiting = WaitingRecord | WaitingBatch | Lane

/** Enqueuing a lane tries again everything that waits in it. */
export interface Lane {
  readonly kind: 'mail' | 'delivery'
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
  /** The URL of the vault's server. Links in mail begin with it. Undefined if no server runs. */
  readonly publicUrl: string | undefined
  enqueue(waiting: readonly Waiting[]): void
  /** Resolves when everything that was enqueued before has had one attempt, or cannot have an attempt now. */
  settle(): Promise<void>
}
