/** Mail and events that wait for delivery. Deliveries of one lane, such as a webhook, wait for each other. */
export type Waiting = WaitingRecord | WaitingBatch | Lane

/** Enqueuing a lane retries everything that waits in it. */
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
  /** The URL of the vault's server, with which links in mail begin; undefined without a server. */
  readonly publicUrl: string | undefined
  enqueue(waiting: readonly Waiting[]): void
  /** Resolves when everything enqueued before was attempted once, or its destination cannot be called now. */
  settle(): Promise<void>
}
