export interface MailPort {
  /** The URL of the server of this vault, which links begin with; undefined without one. */
  readonly publicUrl: string | undefined
  /** Sends the mail of this tenant, which was committed. Does not wait. */
  enqueue(tenant: number): void
  /** Resolves when every mail enqueued so far was attempted once. */
  settle(): Promise<void>
}
