/** The delivery of mail by SMTP. The SMTP library is loaded with the first mail. */
import { formatDate } from '../domain/dates.js'
import { wrapLetter } from '../domain/invitation/letter.js'
import type { MailRecord } from '../domain/records/records.js'
import type { Delivery, Mailer, MailPort, Message } from '../framework/ports/mail.js'
import { letterOf, type MailSettings, readMailSettings, withoutSecret } from '../operations/invite/mail.js'
import type { Store, StoreReader } from '../storage/store.js'
import { type Connection, callLater, DeliveryQueue, delayOf } from './delivery-queue.js'

type Reachable = MailSettings & { url: string }

async function openMailer(settings: Reachable): Promise<Mailer> {
  return (await import('./smtp.js')).openSmtp(settings)
}

export class MailQueue extends DeliveryQueue<'mail', MailSettings> implements MailPort {
  protected readonly kind = 'mail'
  protected readonly advice = 'coffer invite outbox'
  /** Set by the server of the vault. */
  publicUrl: string | undefined
  readonly #openMailer: typeof openMailer

  constructor(store: Store, powers = { openMailer, later: callLater }) {
    super(store, powers.later)
    this.#openMailer = powers.openMailer
  }

  protected readSettings(reader: StoreReader): Promise<MailSettings> {
    return readMailSettings(reader, this.publicUrl)
  }

  protected async connect({ url, ...settings }: MailSettings): Promise<Connection<MailRecord> | undefined> {
    if (url === undefined) return undefined
    const mailer = await this.#openMailer({ ...settings, url })
    return {
      server: mailer.server,
      deliver: (mail) => mailer.send(messageOf(mail, settings)),
      close: () => mailer.close(),
    }
  }

  /** Moves mail to the outbox, after the mail server was removed from the settings. */
  protected park({ due_at: _, ...mail }: MailRecord): MailRecord {
    return { ...mail, state: 'outbox' }
  }

  /** Leaves a mail that waits no longer, unless it was sent. */
  protected afterAttempt(mail: MailRecord, delivery: Delivery, server: string, now: number) {
    const attempts = mail.attempts + 1
    if (delivery.outcome === 'sent') {
      const { failure: _, ...rest } = withoutSecret(mail)
      return { ...rest, state: 'sent' as const, attempts, server, sent_at: formatDate(now) }
    }
    if (mail.state !== 'waiting') return undefined
    const { due_at: _, ...failed } = { ...mail, attempts, server, failure: delivery.reason }
    const dueAt = now + delayOf(attempts)
    const isOver = delivery.outcome === 'refused' || Date.parse(mail.link_expires_at) <= dueAt
    return isOver ? { ...failed, state: 'refused' as const } : { ...failed, due_at: formatDate(dueAt) }
  }
}

function messageOf(mail: MailRecord, { from, publicUrl }: Pick<MailSettings, 'from' | 'publicUrl'>): Message {
  const letter = letterOf(mail, publicUrl)
  const { subject, text } = letter
  const date = Date.parse(mail.created_at)
  // The Message-ID (RFC 5322, 3.6.4), the same at every attempt.
  const id = `<${mail.id}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`
  return { id, from, to: mail.to, subject, text, html: wrapLetter(letter), date }
}
