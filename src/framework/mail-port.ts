/** The ports through which mail leaves: {@link Post} takes what was committed, {@link Mailer} speaks to a mail server. */
import type { Sender } from '../domain/mail-server.js'

/** One mail, complete. `id` is its Message-ID, the same at every attempt. */
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
 * What came of handing a message over. `refused` is final; `postponed` is this mail's alone; `unreachable` is every
 * mail's, because the server could not be spoken to. The reason is in our words and holds no address.
 */
export type Delivery =
  | { outcome: 'sent' }
  | { outcome: 'refused' | 'postponed' | 'unreachable'; reason: string }

/** A way to a mail server. */
export interface Mailer {
  /** Where mail goes, for people. */
  readonly server: string
  /** Never rejects: what goes wrong is the delivery. */
  send(message: Message): Promise<Delivery>
  /** What is under way fails now. */
  close(): void
}

/** Who carries mail away. */
export interface Post {
  /** Where people reach the server that carries mail; absent where none does. */
  readonly publicUrl: string | undefined
  /** Mail of this tenant was committed. Returns at once. */
  collect(tenant: number): void
  /** Resolves when everything collected so far has been tried once. */
  settle(): Promise<void>
}
