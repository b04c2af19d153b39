/** A `mail`, or the `delivery` of an event, that waits to be sent. Those of a lane, such as a webhook, wait for each other. */
export interface Waiting {
  kind: 'mail' | 'delivery'
  tenant: number
  lane: string
  id: string
}

export interface DeliveryPort {
  /** The URL of the server of this vault, which links in mail begin with; undefined without one. */
  readonly publicUrl: string | undefined
  /** Begins to send what was committed. Does not wait. */
  enqueue(waiting: readonly Waiting[]): void
  /** Resolves when all that was enqueued so far was attempted once. */
  settle(): Promise<void>
}
