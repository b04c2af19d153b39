/** Mail, and events for webhooks, that wait to be sent. Those of a lane, such as a webhook, wait for each other. */
export type Waiting = WaitingRecord | WaitingBatch | Lane

/** As something that waits: all of the lane is tried again. */
export interface Lane {
  readonly kind: 'mail' | 'delivery'
  readonly tenant: number
  readonly lane: string
}

export interface WaitingRecord extends Lane {
  readonly id: string
}

/** Events of a webhook that were stored together. */
export interface WaitingBatch extends Lane {
  readonly batch: { readonly id: string; readonly count: number }
}

export interface DeliveryPort {
  /** The URL of the server of this vault, which links in mail begin with; undefined without one. */
  readonly publicUrl: string | undefined
  /** Begins to send what was committed. Does not wait. */
  enqueue(waiting: readonly Waiting[]): void
  /** Resolves when all that was enqueued so far was attempted once, unless its destination cannot be called now. */
  settle(): Promise<void>
}
