/** The delivery of committed mail to the mail server: one mail of a tenant after another, with retries. */
import type { MailRecord } from '../domain/records.js'
import type { Mailer, Post } from '../framework/mail-port.js'
import {
  claimMail,
  keepInOutbox,
  listWaiting,
  listWaitingTenants,
  type MailSettings,
  messageOf,
  noteDelivery,
  type Waiting,
} from '../operations/invite/mail.js'
import type { Store } from '../storage/store.js'

/** ms that a stopping server waits for mails in delivery. */
const STOP_MS = 2_000
/** ms until delivery is retried after an internal error. */
const FAULT_PAUSE_MS = 30_000

/** Receives the results of background delivery: notices for people, and internal errors. */
export interface PostListener {
  /** The address for links, if the settings have none. */
  publicUrl: string
  notice(text: string): void
  fault(error: unknown): void
}

const POWERS = { openMailer, later }

/** Delivery by SMTP. The SMTP library is loaded with the first mail. */
export function createPost(store: Store, powers = POWERS): LastingPost {
  return new LastingPost(store, powers)
}

/** Connects to the server in `settings.url`. */
async function openMailer(settings: MailSettings & { url: string }): Promise<Mailer> {
  return (await import('./smtp.js')).openSmtp(settings)
}

/** Calls `work` once after `ms`; the result cancels it. The timer does not keep the process running. */
function later(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, ms).unref()
  return () => clearTimeout(timer)
}

/** The delivery of a tenant's mail; at most one round at a time. */
interface Route {
  round: Promise<void>
  /** More mail was committed during the round. */
  isWanted: boolean
}

export class LastingPost implements Post {
  readonly #store: Store
  readonly #powers: typeof POWERS
  readonly #routes = new Map<number, Route>()
  readonly #timers = new Map<number, () => void>()
  /** Set by whoever serves the vault; {@link resume} sets it too. */
  publicUrl: string | undefined
  #listener: PostListener | undefined
  #faults: unknown[] = []
  readonly #mailers = new Set<Mailer>()
  #isClosed = false

  constructor(store: Store, powers: typeof POWERS) {
    this.#store = store
    this.#powers = powers
  }

  collect(tenant: number): void {
    if (this.#isClosed) return
    const route = this.#routes.get(tenant)
    if (route !== undefined) {
      route.isWanted = true
      return
    }
    const fresh: Route = { round: Promise.resolve(), isWanted: true }
    this.#routes.set(tenant, fresh)
    fresh.round = this.#walk(tenant, fresh)
  }

  async settle(): Promise<void> {
    while (this.#routes.size > 0) await Promise.all(this.#rounds())
    const [fault] = this.#faults
    this.#faults = []
    if (fault !== undefined) throw fault
  }

  /** Starts background delivery: sends the waiting mail of all tenants, and retries. */
  async resume(listener: PostListener): Promise<void> {
    this.#listener = listener
    this.publicUrl = listener.publicUrl
    for (const tenant of await listWaitingTenants(this.#store)) this.collect(tenant)
  }

  /** After a jump of the clock: sends what is due now. Resolves when it was tried. */
  async catchUp(): Promise<void> {
    if (this.#listener === undefined) return
    await this.resume(this.#listener)
    await this.settle()
  }

  /** Begins to send what other servers of the same store have left; nothing where there are none. */
  async takeOver(): Promise<void> {
    if (this.#store.isShared && this.#listener !== undefined) await this.resume(this.#listener)
  }

  /** Stops. In the background the mails in delivery are finished first; in a command, all collected mails. */
  async close(): Promise<void> {
    // A command waits until its mail was tried; a server continues at its next start.
    if (this.#listener === undefined) await Promise.all(this.#rounds())
    this.#isClosed = true
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
    const cancel = this.#powers.later(STOP_MS, () => {
      for (const mailer of this.#mailers) mailer.close()
    })
    await Promise.all(this.#rounds())
    cancel()
  }

  #rounds(): Promise<void>[] {
    return [...this.#routes.values()].map(({ round }) => round)
  }

  async #walk(tenant: number, route: Route): Promise<void> {
    try {
      while (route.isWanted && !this.#isClosed) {
        route.isWanted = false
        await this.#carry(tenant)
      }
    } catch (error) {
      if (this.#listener === undefined) this.#faults.push(error)
      else {
        this.#listener.fault(error)
        this.#collectLater(tenant, FAULT_PAUSE_MS)
      }
    } finally {
      this.#routes.delete(tenant)
    }
  }

  async #carry(tenant: number): Promise<void> {
    const waiting = await listWaiting(this.#store, tenant, this.publicUrl)
    const { due, settings } = waiting
    if (due.length > 0) {
      const { url } = settings
      if (url === undefined) await keepInOutbox(this.#store, tenant, due)
      else await this.#handOver(tenant, due, { ...settings, url })
    }
    await this.#planNext(
      tenant,
      due.length > 0 ? await listWaiting(this.#store, tenant, this.publicUrl) : waiting,
    )
  }

  async #handOver(tenant: number, due: readonly MailRecord[], settings: MailSettings & { url: string }) {
    const mailer = await this.#powers.openMailer(settings)
    const { server } = mailer
    this.#mailers.add(mailer)
    try {
      for (const [at, mail] of due.entries()) {
        if (this.#isClosed) return
        if (!(await claimMail(this.#store, tenant, mail))) continue
        const delivery = await mailer.send(messageOf(mail, settings))
        // A crash between the server's acceptance and this write leads to a second copy with the same Message-ID.
        const isOver = delivery.outcome === 'unreachable'
        const tried = isOver ? due.slice(at) : [mail]
        await noteDelivery(this.#store, tenant, tried, { delivery, server })
        if (delivery.outcome !== 'sent') this.#tell(tried.length, server, delivery.reason)
        if (isOver) return
      }
    } finally {
      this.#mailers.delete(mailer)
      mailer.close()
    }
  }

  #tell(count: number, server: string, reason: string): void {
    const what = count === 1 ? 'One mail' : `${count} mails`
    this.#listener?.notice(`${what} could not be handed to ${server}: ${reason} See: coffer invite outbox`)
  }

  /** Plans the next round; only in the background, because a command does not wait for retries. */
  async #planNext(tenant: number, { due, nextAt }: Waiting): Promise<void> {
    if (this.#listener === undefined) return
    this.#cancelTimer(tenant)
    // More mail was committed in the meantime.
    if (due.length > 0) return this.collect(tenant)
    if (nextAt === undefined) return
    const now = await this.#store.read(async (reader) => reader.now)
    this.#collectLater(tenant, Math.max(0, nextAt - now))
  }

  #collectLater(tenant: number, ms: number): void {
    this.#cancelTimer(tenant)
    if (this.#isClosed) return
    const cancel = this.#powers.later(ms, () => {
      this.#timers.delete(tenant)
      this.collect(tenant)
    })
    this.#timers.set(tenant, cancel)
  }

  #cancelTimer(tenant: number): void {
    this.#timers.get(tenant)?.()
    this.#timers.delete(tenant)
  }
}
