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
interface PostListener {
  /** The address for links, if the settings have none. */
  publicUrl: string
  notice(text: string): void
  fault(error: unknown): void
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

const POWERS = { openMailer, later }

/** The delivery of a tenant's mail; at most one round at a time. */
interface Route {
  round: Promise<void>
  /** More mail was committed during the round. */
  isWanted: boolean
}

export type LastingPost = ReturnType<typeof createPost>

/** Delivery by SMTP. The SMTP library is loaded with the first mail. */
export function createPost(store: Store, { openMailer, later } = POWERS) {
  const routes = new Map<number, Route>()
  const timers = new Map<number, () => void>()
  const mailers = new Set<Mailer>()
  let listener: PostListener | undefined
  let faults: unknown[] = []
  let isClosed = false
  const post = {
    /** Set by whoever serves the vault; `resume` sets it too. */
    publicUrl: undefined as string | undefined,
    collect,
    settle,
    resume,
    catchUp,
    /** Begins to send what other servers of the same store have left; nothing where there are none. */
    takeOver: async () => {
      if (store.isShared && listener !== undefined) await resume(listener)
    },
    close,
  }
  return post satisfies Post

  function collect(tenant: number): void {
    if (isClosed) return
    const route = routes.get(tenant)
    if (route !== undefined) {
      route.isWanted = true
      return
    }
    const fresh: Route = { round: Promise.resolve(), isWanted: true }
    routes.set(tenant, fresh)
    fresh.round = walk(tenant, fresh)
  }

  async function settle(): Promise<void> {
    while (routes.size > 0) await Promise.all(rounds())
    const [fault] = faults
    faults = []
    if (fault !== undefined) throw fault
  }

  /** Starts background delivery: sends the waiting mail of all tenants, and retries. */
  async function resume(told: PostListener): Promise<void> {
    listener = told
    post.publicUrl = told.publicUrl
    for (const tenant of await listWaitingTenants(store)) collect(tenant)
  }

  /** After a jump of the clock: sends what is due now. Resolves when it was tried. */
  async function catchUp(): Promise<void> {
    if (listener === undefined) return
    await resume(listener)
    await settle()
  }

  /** Stops. In the background the mails in delivery are finished first; in a command, all collected mails. */
  async function close(): Promise<void> {
    // A command waits until its mail was tried; a server continues at its next start.
    if (listener === undefined) await Promise.all(rounds())
    isClosed = true
    for (const cancel of timers.values()) cancel()
    timers.clear()
    const cancel = later(STOP_MS, () => {
      for (const mailer of mailers) mailer.close()
    })
    await Promise.all(rounds())
    cancel()
  }

  function rounds(): Promise<void>[] {
    return [...routes.values()].map(({ round }) => round)
  }

  async function walk(tenant: number, route: Route): Promise<void> {
    try {
      while (route.isWanted && !isClosed) {
        route.isWanted = false
        await carry(tenant)
      }
    } catch (error) {
      if (listener === undefined) faults.push(error)
      else {
        listener.fault(error)
        collectLater(tenant, FAULT_PAUSE_MS)
      }
    } finally {
      routes.delete(tenant)
    }
  }

  async function carry(tenant: number): Promise<void> {
    const waiting = await listWaiting(store, tenant, post.publicUrl)
    const { due, settings } = waiting
    if (due.length === 0) return planNext(tenant, waiting)
    const { url } = settings
    if (url === undefined) await keepInOutbox(store, tenant, due)
    else await handOver(tenant, due, { ...settings, url })
    await planNext(tenant, await listWaiting(store, tenant, post.publicUrl))
  }

  async function handOver(
    tenant: number,
    due: readonly MailRecord[],
    settings: MailSettings & { url: string },
  ) {
    const mailer = await openMailer(settings)
    const { server } = mailer
    mailers.add(mailer)
    try {
      for (const [at, mail] of due.entries()) {
        if (isClosed) return
        if (!(await claimMail(store, tenant, mail))) continue
        const delivery = await mailer.send(messageOf(mail, settings))
        // A crash between the server's acceptance and this write leads to a second copy with the same Message-ID.
        const isOver = delivery.outcome === 'unreachable'
        const tried = isOver ? due.slice(at) : [mail]
        await noteDelivery(store, tenant, tried, { delivery, server })
        if (delivery.outcome !== 'sent') {
          const what = tried.length === 1 ? 'One mail' : `${tried.length} mails`
          const why = `could not be handed to ${server}: ${delivery.reason}`
          listener?.notice(`${what} ${why} See: coffer invite outbox`)
        }
        if (isOver) return
      }
    } finally {
      mailers.delete(mailer)
      mailer.close()
    }
  }

  /** Plans the next round; only in the background, because a command does not wait for retries. */
  async function planNext(tenant: number, { due, nextAt }: Waiting): Promise<void> {
    if (listener === undefined) return
    cancelTimer(tenant)
    // More mail was committed in the meantime.
    if (due.length > 0) return collect(tenant)
    if (nextAt === undefined) return
    const now = await store.read(async (reader) => reader.now)
    collectLater(tenant, Math.max(0, nextAt - now))
  }

  function collectLater(tenant: number, ms: number): void {
    cancelTimer(tenant)
    if (isClosed) return
    const cancel = later(ms, () => {
      timers.delete(tenant)
      collect(tenant)
    })
    timers.set(tenant, cancel)
  }

  function cancelTimer(tenant: number): void {
    timers.get(tenant)?.()
    timers.delete(tenant)
  }
}
