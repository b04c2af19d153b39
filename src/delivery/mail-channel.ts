/** Sends mail by SMTP. The waiting mails of a tenant share a connection. */
import { formatDate } from '../domain/dates.js'
import { wrapLetter } from '../domain/invitation/letter.js'
import type { MailRecord } from '../domain/records/records.js'
import type { DeliveryPort } from '../framework/ports/deliveries.js'
import { letterOf, type MailSettings, readMailSettings, withoutSecret } from '../operations/invite/mail.js'
import type { Store } from '../storage/store.js'
import type { Channel, Outcome } from './queue.js'
import type { Delivery, Mailer, Message } from './smtp.js'

const FIRST_DELAY_MS = 30_000
const LONGEST_DELAY_MS = 3_600_000
/** A mail without a link is retried for this time. A mail with a link is retried until the link expires. */
const TRIED_MS = 72 * 60 * 60 * 1000

/** Imports the SMTP library only when there is a mail to send. */
async function openMailer(settings: { url: string; ca: string | undefined }): Promise<Mailer> {
  return (await import('./smtp.js')).openSmtp(settings)
}

export class MailChannel implements Channel<'mail'> {
  readonly kind = 'mail'
  readonly atOnce = 1
  readonly leaseMs = 5 * 60 * 1000
  readonly #store: Store
  readonly #queue: Pick<DeliveryPort, 'publicUrl'>
  readonly #open: typeof openMailer
  readonly #mailers = new Map<number, Mailer>()

  constructor(store: Store, queue: Pick<DeliveryPort, 'publicUrl'>, open = openMailer) {
    this.#store = store
    this.#queue = queue
    this.#open = open
  }

  laneOf(): string {
    return ''
  }

  async send(tenant: number, mail: MailRecord): Promise<Outcome<'mail'>> {
    const settings = await this.#store.read((reader) => readMailSettings(reader, this.#queue.publicUrl))
    const { url, ca } = settings
    if (url === undefined) return { change: async ({ due_at: _, ...found }) => leave(found), isOfLane: true }
    const mailer = this.#mailers.get(tenant) ?? (await this.#open({ url, ca }))
    this.#mailers.set(tenant, mailer)
    const delivery = await mailer.send(messageOf(mail, settings))
    const { server } = mailer
    const outcome = delivery.outcome
    return {
      change: async (found, { now }) => afterAttempt(found, delivery, server, now),
      isOfLane: outcome === 'unreachable',
      ...(outcome !== 'sent' && {
        notice: (count) =>
          `${count === 1 ? 'One mail' : `${count} mails`} could not be handed to ${server}: ${delivery.reason} See: coffer invite outbox`,
      }),
    }
  }

  rest(tenant: number): void {
    this.#mailers.get(tenant)?.close()
    this.#mailers.delete(tenant)
  }

  abort(): void {
    for (const mailer of this.#mailers.values()) mailer.close()
  }
}

function leave(mail: MailRecord): MailRecord | undefined {
  return mail.state === 'waiting' ? { ...mail, state: 'outbox' } : undefined
}

/** Returns undefined if the record does not change. A failed attempt changes only a waiting record. */
function afterAttempt(mail: MailRecord, delivery: Delivery, server: string, now: number) {
  const attempts = mail.attempts + 1
  if (delivery.outcome === 'sent') {
    const { failure: _, ...rest } = withoutSecret(mail)
    return { ...rest, state: 'sent' as const, attempts, server, sent_at: formatDate(now) }
  }
  if (mail.state !== 'waiting') return undefined
  const { due_at: _, ...failed } = { ...mail, attempts, server, failure: delivery.reason }
  const dueAt = now + Math.min(FIRST_DELAY_MS * 2 ** (attempts - 1), LONGEST_DELAY_MS)
  const { link_expires_at = formatDate(Date.parse(mail.created_at) + TRIED_MS) } = mail
  const isOver = delivery.outcome === 'refused' || Date.parse(link_expires_at) <= dueAt
  return isOver ? { ...failed, state: 'refused' as const } : { ...failed, due_at: formatDate(dueAt) }
}

function messageOf(mail: MailRecord, { from, publicUrl }: Pick<MailSettings, 'from' | 'publicUrl'>): Message {
  const letter = letterOf(mail, publicUrl)
  const { subject, text } = letter
  const date = Date.parse(mail.created_at)
  // The Message-ID (RFC 5322, 3.6.4) is the same in all attempts.
  const id = `<${mail.id}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`
  return { id, from, to: mail.to, subject, text, html: wrapLetter(letter), date }
}
