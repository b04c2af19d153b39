/** The ports of mail: {@link MailPort} sends committed mail in the background, {@link Mailer} talks to a mail server. */
import type { Sender } from '../../domain/invitation/mail-server.js'

/** A complete mail. `id` is its Message-ID, the same at every attempt. */
export interface Message {
  id: string
  from: Sender
  to: string
  subject: string
  text: string
  html: string
  /** ms since the epoch. */
  date: number
}

/**
 * The result of sending a message. `refused` is final; `postponed` concerns this mail only; `unreachable` concerns every
 * mail to the server. The reason contains no address.
 */
export type Delivery =
  | { outcome: 'sent' }
  | { outcome: 'refused' | 'postponed' | 'unreachable'; reason: string }

export interface Mailer {
  /** The name of the mail server, for display. */
  readonly server: string
  /** Never rejects: a failure is a delivery. */
  send(message: Message): Promise<Delivery>
  /** Fails what is being sent. */
  close(): void
}

export interface MailPort {
  /** The URL of the server of this vault, which links begin with; undefined without one. */
  readonly publicUrl: string | undefined
  /** Sends the mail of this tenant, which was committed. Does not wait. */
  enqueue(tenant: number): void
  /** Resolves when every mail enqueued so far was attempted once. */
  settle(): Promise<void>
}
