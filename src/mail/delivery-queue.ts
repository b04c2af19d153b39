/**
 * Delivers committed records to another server: one record of a tenant after another, with retries. The records have the
 * state of the delivery, so that it goes on after a restart; a lease keeps servers of one store from delivering twice.
 */
import { formatDate } from '../domain/dates.js'
import type { RecordOf } from '../domain/records/records.js'
import type { Delivery } from '../framework/ports/mail.js'
import { findNewest, readAll } from '../storage/pages.js'
import type { Store, StoreReader } from '../storage/store.js'

/** ms that a stopping server waits for deliveries under way. */
const STOP_MS = 2_000
/** ms until delivery is retried after an internal error. */
const FAULT_PAUSE_MS = 30_000
/** More than one delivery can take. */
const LEASE_MS = 5 * 60 * 1000
const FIRST_DELAY_MS = 30_000
const LONGEST_DELAY_MS = 3_600_000
const TENANTS_PER_PAGE = 1000
const WAITING = { field: 'state', value: 'waiting' }

/** Kinds of records with `state`, `attempts` and `due_at`, found by their state. */
type Kind = 'mail'

/** Receives the results of background delivery: notices for people, and internal errors. */
interface DeliveryListener {
  notice(text: string): void
  fault(error: unknown): void
}

export interface Connection<Item> {
  /** The name of the other server, for display. */
  readonly server: string
  /** Never rejects: a failure is a result too. */
  deliver(item: Item): Promise<Delivery>
  /** Makes a delivery under way fail. */
  close(): void
}

/** Calls `work` once after `ms`; the result cancels it. The timer does not keep the process running. */
export function callLater(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, ms).unref()
  return () => clearTimeout(timer)
}

/** ms to wait after the given number of failed attempts: 30 s, doubled each time, at most an hour. */
export function delayOf(attempts: number): number {
  return Math.min(FIRST_DELAY_MS * 2 ** (attempts - 1), LONGEST_DELAY_MS)
}

/** The delivery of a tenant's records; at most one round at a time. */
interface Slot {
  round: Promise<void>
  /** More was committed during the round. */
  isWanted: boolean
}

interface Waiting<Item, Settings> {
  due: Item[]
  /** ms since the epoch; absent without later records. */
  nextAt?: number
  settings: Settings
}

export abstract class DeliveryQueue<K extends Kind, Settings> {
  protected abstract readonly kind: K
  /** The command that shows the records. */
  protected abstract readonly advice: string
  readonly #store: Store
  readonly #later: typeof callLater
  readonly #slots = new Map<number, Slot>()
  readonly #timers = new Map<number, () => void>()
  readonly #connections = new Set<Connection<RecordOf[K]>>()
  /** Absent in a command, which tries each record once. */
  #listener: DeliveryListener | undefined
  #faults: unknown[] = []
  #isClosed = false

  constructor(store: Store, later = callLater) {
    this.#store = store
    this.#later = later
  }

  protected abstract readSettings(reader: StoreReader): Promise<Settings>
  /** Returns undefined if there is no server: the records are {@link park}ed. */
  protected abstract connect(settings: Settings): Promise<Connection<RecordOf[K]> | undefined>
  protected abstract park(item: RecordOf[K]): RecordOf[K]
  /** Returns the record after another attempt; undefined leaves it. */
  protected abstract afterAttempt(
    item: RecordOf[K],
    delivery: Delivery,
    server: string,
    now: number,
  ): RecordOf[K] | undefined

  /** Begins to deliver the committed records of the tenant. Does not wait. */
  enqueue(tenant: number): void {
    if (this.#isClosed) return
    const slot = this.#slots.get(tenant)
    if (slot !== undefined) {
      slot.isWanted = true
      return
    }
    const fresh: Slot = { round: Promise.resolve(), isWanted: true }
    this.#slots.set(tenant, fresh)
    fresh.round = this.#run(tenant, fresh)
  }

  /** Resolves when every record that was enqueued so far was attempted once. @throws the first internal error */
  async settle(): Promise<void> {
    while (this.#slots.size > 0) await this.#rounds()
    const [fault] = this.#faults
    this.#faults = []
    if (fault !== undefined) throw fault
  }

  /** Starts background delivery: delivers the waiting records of all tenants, and retries. */
  async resume(listener: DeliveryListener): Promise<void> {
    this.#listener = listener
    for (const tenant of await this.#listTenants()) this.enqueue(tenant)
  }

  /** After a jump of the clock: delivers the records that are due now. Resolves after one attempt at each. */
  async catchUp(): Promise<void> {
    if (this.#listener === undefined) return
    await this.resume(this.#listener)
    await this.settle()
  }

  /** Begins to deliver records that other servers of the same store have left. */
  async takeOver(): Promise<void> {
    if (this.#store.isShared && this.#listener !== undefined) await this.resume(this.#listener)
  }

  /** Finishes deliveries under way; a command first attempts all enqueued records, a server goes on at its next start. */
  async close(): Promise<void> {
    if (this.#listener === undefined) await this.#rounds()
    this.#isClosed = true
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
    const cancel = this.#later(STOP_MS, () => {
      for (const connection of this.#connections) connection.close()
    })
    await this.#rounds()
    cancel()
  }

  #rounds(): Promise<unknown> {
    return Promise.all([...this.#slots.values()].map(({ round }) => round))
  }

  async #run(tenant: number, slot: Slot): Promise<void> {
    try {
      while (slot.isWanted && !this.#isClosed) {
        slot.isWanted = false
        await this.#deliverDue(tenant)
      }
    } catch (error) {
      if (this.#listener === undefined) this.#faults.push(error)
      else {
        this.#listener.fault(error)
        this.#enqueueLater(tenant, FAULT_PAUSE_MS)
      }
    } finally {
      this.#slots.delete(tenant)
    }
  }

  async #deliverDue(tenant: number): Promise<void> {
    const waiting = await this.#readWaiting(tenant)
    const { due, settings } = waiting
    if (due.length === 0) return this.#planNext(tenant, waiting)
    const connection = await this.connect(settings)
    if (connection !== undefined) await this.#deliverAll(tenant, due, connection)
    else await this.#change(tenant, due, (item) => (item.state === 'waiting' ? this.park(item) : undefined))
    await this.#planNext(tenant, await this.#readWaiting(tenant))
  }

  async #deliverAll(tenant: number, due: readonly RecordOf[K][], connection: Connection<RecordOf[K]>) {
    const { server } = connection
    this.#connections.add(connection)
    try {
      for (const [at, item] of due.entries()) {
        if (this.#isClosed) return
        if (!(await this.#lease(tenant, item))) continue
        const delivery = await connection.deliver(item)
        // A crash between the server's acceptance and this write leads to a second copy with the same id.
        const isOver = delivery.outcome === 'unreachable'
        const tried = isOver ? due.slice(at) : [item]
        await this.#change(tenant, tried, (each, now) =>
          each.id === item.id || isDue(each, now)
            ? this.afterAttempt(each, delivery, server, now)
            : undefined,
        )
        if (delivery.outcome !== 'sent') {
          const what = tried.length === 1 ? `One ${this.kind}` : `${tried.length} ${this.kind}s`
          const why = `could not be handed to ${server}: ${delivery.reason}`
          this.#listener?.notice(`${what} ${why} See: ${this.advice}`)
        }
        if (isOver) return
      }
    } finally {
      this.#connections.delete(connection)
      connection.close()
    }
  }

  /** Plans the next round; only in the background, because a command does not wait for retries. */
  async #planNext(tenant: number, { due, nextAt }: Waiting<RecordOf[K], Settings>): Promise<void> {
    if (this.#listener === undefined) return
    this.#cancelTimer(tenant)
    // More was committed in the meantime.
    if (due.length > 0) return this.enqueue(tenant)
    if (nextAt === undefined) return
    const now = await this.#store.read(async (reader) => reader.now)
    this.#enqueueLater(tenant, Math.max(0, nextAt - now))
  }

  #enqueueLater(tenant: number, ms: number): void {
    this.#cancelTimer(tenant)
    if (this.#isClosed) return
    const cancel = this.#later(ms, () => {
      this.#timers.delete(tenant)
      this.enqueue(tenant)
    })
    this.#timers.set(tenant, cancel)
  }

  #cancelTimer(tenant: number): void {
    this.#timers.get(tenant)?.()
    this.#timers.delete(tenant)
  }

  /** Returns the numbers of the tenants that have waiting records, due or not. */
  async #listTenants(): Promise<number[]> {
    const waiting: number[] = []
    for (let page = 1; ; page++) {
      const isLast = await this.#store.read(async (reader) => {
        const { records, total } = await reader.find('tenant', 0, { page, size: TENANTS_PER_PAGE })
        for (const { number } of records)
          if ((await findNewest(reader, this.kind, number, WAITING)) !== undefined) waiting.push(number)
        return page * TENANTS_PER_PAGE >= total
      })
      if (isLast) return waiting
    }
  }

  /** Returns the waiting records of a tenant, oldest first; none if the tenant was deleted. */
  async #readWaiting(tenant: number): Promise<Waiting<RecordOf[K], Settings>> {
    return this.#store.read(async (reader) => {
      const settings = await this.readSettings(reader)
      const isThere = (await reader.get('tenant', 0, String(tenant))) !== undefined
      const waiting = isThere ? (await readAll(reader, this.kind, tenant, WAITING)).reverse() : []
      const due = waiting.filter((item) => isDue(item, reader.now))
      const later = waiting.filter((item) => !due.includes(item)).map(({ due_at = '' }) => Date.parse(due_at))
      return { due, settings, ...(later.length > 0 && { nextAt: Math.min(...later) }) }
    })
  }

  /** Leases a record of a shared store, which is due again after the lease. False if another server has it. */
  async #lease(tenant: number, { id }: RecordOf[K]): Promise<boolean> {
    if (!this.#store.isShared) return true
    let hasLease = false
    await this.#change(tenant, [{ id }], (item, now) => {
      hasLease = isDue(item, now)
      return hasLease ? { ...item, due_at: formatDate(now + LEASE_MS) } : undefined
    })
    return hasLease
  }

  /** Stores what `change` makes of each record; undefined leaves it. A record that was deleted meanwhile is ignored. */
  async #change(
    tenant: number,
    items: readonly Pick<RecordOf[K], 'id'>[],
    change: (item: RecordOf[K], now: number) => RecordOf[K] | undefined,
  ): Promise<void> {
    await this.#store.write(async (writer) => {
      if ((await writer.get('tenant', 0, String(tenant))) === undefined) return
      for (const { id } of items) {
        const item = await writer.get(this.kind, tenant, id)
        const changed = item && change(item, writer.now)
        if (changed !== undefined) await writer.replace(this.kind, tenant, changed)
      }
    })
  }
}

function isDue({ state, due_at = '' }: RecordOf[Kind], now: number): boolean {
  return state === 'waiting' && Date.parse(due_at) <= now
}
