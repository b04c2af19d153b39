/** Delivers committed mail by SMTP. A record holds the state of its delivery, which so survives a restart. */
import { formatDate } from '../domain/dates.js'
import { wrapLetter } from '../domain/invitation/letter.js'
import type { MailRecord } from '../domain/records/records.js'
import type { MailPort } from '../framework/operation.js'
import { letterOf, type MailSettings, readMailSettings, withoutSecret } from '../operations/invite/mail.js'
import { eachRecord, findNewest, readAll, type Store } from '../storage/store.js'
import type { Delivery, Mailer, Message } from './smtp.js'

/** ms that a stopping server waits for deliveries under way. */
const STOP_MS = 2_000
/** More than one delivery can take. */
const LEASE_MS = 5 * 60 * 1000
const FIRST_DELAY_MS = 30_000
const LONGEST_DELAY_MS = 3_600_000
const WAITING = { field: 'state', value: 'waiting' }

async function openMailer(settings: { url: string; ca: string | undefined }): Promise<Mailer> {
  return (await import('./smtp.js')).openSmtp(settings)
}

export class MailQueue implements MailPort {
  publicUrl: string | undefined
  readonly #store: Store
  readonly #openMailer: typeof openMailer
  readonly #pending = new Set<number>()
  readonly #mailers = new Set<Mailer>()
  #running: Promise<void> | undefined
  /** Absent in a command, which tries each mail once. */
  #listener: { notice(text: string): void; fault(error: unknown): void } | undefined
  #faults: unknown[] = []
  #isClosed = false

  constructor(store: Store, open = openMailer) {
    this.#store = store
    this.#openMailer = open
  }

  /** Begins to deliver the committed mail of the tenant. Does not wait. */
  enqueue(tenant: number): void {
    if (this.#isClosed) return
    this.#pending.add(tenant)
    this.#running ??= this.#run()
  }

  /** Resolves when every mail that was enqueued so far was attempted once. @throws the first internal error */
  async settle(): Promise<void> {
    await this.#running
    const [fault] = this.#faults.splice(0)
    if (fault !== undefined) throw fault
  }

  /** Begins to deliver all mail that is due. A server calls it at its start with a listener, and then every 30 s. */
  async resume(listener = this.#listener): Promise<void> {
    this.#listener = listener
    if (listener === undefined) return
    for await (const { number } of eachRecord(this.#store, 'tenant', 0)) {
      const newest = await this.#store.read((reader) => findNewest(reader, 'mail', number, WAITING))
      if (newest !== undefined) this.enqueue(number)
    }
  }

  /** Finishes deliveries under way; a command first attempts all enqueued mail, a server goes on at its next start. */
  async close(): Promise<void> {
    if (this.#listener === undefined) await this.#running
    this.#isClosed = true
    const timer = setTimeout(() => {
      for (const mailer of this.#mailers) mailer.close()
    }, STOP_MS)
    await this.#running
    clearTimeout(timer)
  }

  async #run(): Promise<void> {
    while (this.#pending.size > 0 && !this.#isClosed) {
      const tenants = [...this.#pending]
      this.#pending.clear()
      await Promise.all(tenants.map((tenant) => this.#deliverDue(tenant).catch(this.#report)))
    }
    this.#running = undefined
  }

  #report = (error: unknown): void => {
    if (this.#listener === undefined) this.#faults.push(error)
    else this.#listener.fault(error)
  }

  async #deliverDue(tenant: number): Promise<void> {
    const { due, settings } = await this.#readDue(tenant)
    if (due.length === 0) return
    if (settings.url === undefined)
      await this.#change(tenant, due, ({ due_at: _, ...mail }) =>
        mail.state === 'waiting' ? { ...mail, state: 'outbox' } : undefined,
      )
    else await this.#send(tenant, due, { ...settings, url: settings.url })
    this.enqueue(tenant)
  }

  async #send(tenant: number, due: readonly MailRecord[], settings: MailSettings & { url: string }) {
    const mailer = await this.#openMailer(settings)
    const { server } = mailer
    this.#mailers.add(mailer)
    try {
      for (const [at, mail] of due.entries()) {
        if (this.#isClosed) return
        if (!(await this.#lease(tenant, mail))) continue
        const delivery = await mailer.send(messageOf(mail, settings))
        // A crash between the server's acceptance and this write leads to a second copy with the same id.
        const tried = delivery.outcome === 'unreachable' ? due.slice(at) : [mail]
        await this.#change(tenant, tried, (each, now) =>
          each.id === mail.id || isDue(each, now) ? afterAttempt(each, delivery, server, now) : undefined,
        )
        if (delivery.outcome === 'sent') continue
        const what = tried.length === 1 ? 'One mail' : `${tried.length} mails`
        const why = `could not be handed to ${server}: ${delivery.reason}`
        this.#listener?.notice(`${what} ${why} See: coffer invite outbox`)
        if (delivery.outcome === 'unreachable') return
      }
    } finally {
      this.#mailers.delete(mailer)
      mailer.close()
    }
  }

  /** The mail of a tenant that is due, oldest first; none if the tenant was deleted. */
  #readDue(tenant: number) {
    return this.#store.read(async (reader) => {
      const settings = await readMailSettings(reader, this.publicUrl)
      const isThere = (await reader.get('tenant', 0, String(tenant))) !== undefined
      const waiting = isThere ? (await readAll(reader, 'mail', tenant, WAITING)).reverse() : []
      return { due: waiting.filter((mail) => isDue(mail, reader.now)), settings }
    })
  }

  /** Leases a mail of a shared store, which is due again after the lease. False if another server has it. */
  async #lease(tenant: number, mail: MailRecord): Promise<boolean> {
    if (!this.#store.isShared) return true
    let hasLease = false
    await this.#change(tenant, [mail], (found, now) => {
      hasLease = isDue(found, now)
      return hasLease ? { ...found, due_at: formatDate(now + LEASE_MS) } : undefined
    })
    return hasLease
  }

  /** Stores what `change` makes of each mail; undefined leaves it. A mail that was deleted meanwhile is ignored. */
  async #change(
    tenant: number,
    mails: readonly MailRecord[],
    change: (mail: MailRecord, now: number) => MailRecord | undefined,
  ): Promise<void> {
    await this.#store.write(async (writer) => {
      if ((await writer.get('tenant', 0, String(tenant))) === undefined) return
      for (const { id } of mails) {
        const mail = await writer.get('mail', tenant, id)
        const changed = mail && change(mail, writer.now)
        if (changed !== undefined) await writer.replace('mail', tenant, changed)
      }
    })
  }
}

function isDue({ state, due_at = '' }: MailRecord, now: number): boolean {
  return state === 'waiting' && Date.parse(due_at) <= now
}

/** The mail after another attempt; undefined leaves a mail that waits no longer, unless it was sent. */
function afterAttempt(mail: MailRecord, delivery: Delivery, server: string, now: number) {
  const attempts = mail.attempts + 1
  if (delivery.outcome === 'sent') {
    const { failure: _, ...rest } = withoutSecret(mail)
    return { ...rest, state: 'sent' as const, attempts, server, sent_at: formatDate(now) }
  }
  if (mail.state !== 'waiting') return undefined
  const { due_at: _, ...failed } = { ...mail, attempts, server, failure: delivery.reason }
  const dueAt = now + Math.min(FIRST_DELAY_MS * 2 ** (attempts - 1), LONGEST_DELAY_MS)
  const isOver = delivery.outcome === 'refused' || Date.parse(mail.link_expires_at) <= dueAt
  return isOver ? { ...failed, state: 'refused' as const } : { ...failed, due_at: formatDate(dueAt) }
}

function messageOf(mail: MailRecord, { from, publicUrl }: Pick<MailSettings, 'from' | 'publicUrl'>): Message {
  const letter = letterOf(mail, publicUrl)
  const { subject, text } = letter
  const date = Date.parse(mail.created_at)
  // The Message-ID (RFC 5322, 3.6.4), the same at every attempt.
  const id = `<${mail.id}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`
  return { id, from, to: mail.to, subject, text, html: wrapLetter(letter), date }
}
