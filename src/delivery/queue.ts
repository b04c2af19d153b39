/** Sends what is committed and waits: mail, and events. A record holds the state of its delivery, which so survives a restart. */
import { formatDate } from '../domain/dates.js'
import type { RecordOf } from '../domain/records/records.js'
import type { DeliveryPort, Waiting } from '../framework/ports/deliveries.js'
import type { PutOptions, Store, StoreReader, StoreWriter } from '../storage/store.js'
import { eachRecord, readAll } from '../storage/store.js'

/** ms that a stopping server waits for deliveries under way. */
const STOP_MS = 2_000
/** A server calls `resume` so often. */
const RESUMED_MS = 30_000
const WAITING = { field: 'state', value: 'waiting' }

type Enqueue = DeliveryPort['enqueue']
type Kind = Waiting['kind']
type Queued = RecordOf[Kind]

/** An attempt changes its record so. */
export interface Outcome<K extends Kind> {
  /** Returns the record to be stored; undefined leaves it. `enqueue`: has more sent, after the commit. */
  change(record: RecordOf[K], writer: StoreWriter, enqueue: Enqueue): Promise<RecordOf[K] | undefined>
  /** It concerns all of the lane that is due. */
  isOfLane?: boolean
  /** Tells the operator of a failure that concerns so many. */
  notice?(count: number): string
}

/** One way of sending. */
export interface Channel<K extends Kind> {
  readonly kind: K
  /** The number of attempts of one lane at the same time. */
  readonly atOnce: number
  /** More than one attempt can take. */
  readonly leaseMs: number
  laneOf(record: RecordOf[K]): string
  putOptions?(record: RecordOf[K]): PutOptions
  send(tenant: number, record: RecordOf[K]): Promise<Outcome<K>>
  /** Nothing of the tenant waits. */
  rest?(tenant: number): void
  /** Ends what is under way. */
  abort(): void
}

// biome-ignore lint/suspicious/noExplicitAny: the queue gives a channel records of its own kind only.
type AnyChannel = Channel<any>
type Lane = { running: number; left: Waiting[] }
type Listener = { notice(text: string): void; fault(error: unknown): void }

export class DeliveryQueue implements DeliveryPort {
  publicUrl: string | undefined
  readonly #store: Store
  readonly #channels: Readonly<Record<Kind, AnyChannel>>
  readonly #lanes = new Map<string, Lane>()
  /** The keys of all that is in a lane. */
  readonly #known = new Set<string>()
  readonly #running = new Set<Promise<void>>()
  /** Absent in a command, which tries each once. */
  #listener: Listener | undefined
  #faults: unknown[] = []
  #isClosed = false

  /** `channels` may read the public URL of this queue. */
  constructor(store: Store, channels: (queue: DeliveryQueue) => AnyChannel[]) {
    this.#store = store
    const byKind = channels(this).map((channel) => [channel.kind, channel])
    this.#channels = Object.fromEntries(byKind)
  }

  /** A command attempts what earlier ones left before it. */
  enqueue(waiting: readonly Waiting[]): void {
    if (this.#listener !== undefined) this.#add(waiting)
    else
      for (const tenant of new Set(waiting.map((each) => each.tenant)))
        for (const kind of new Set(waiting.map((each) => each.kind))) this.#track(this.#findDue(kind, tenant))
  }

  #add(waiting: readonly Waiting[]): void {
    for (const each of waiting) {
      const key = keyOf(each)
      if (this.#isClosed || this.#known.has(key)) continue
      this.#known.add(key)
      const name = keyOf({ ...each, id: '' })
      const lane = this.#lanes.get(name) ?? { running: 0, left: [] }
      this.#lanes.set(name, lane)
      lane.left.push(each)
      this.#start(name, lane)
    }
  }

  /** @throws the first internal error */
  async settle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
    const [fault] = this.#faults.splice(0)
    if (fault !== undefined) throw fault
  }

  /** Begins to send all that is due. A server calls it at its start with a listener, and then every 30 s. */
  async resume(listener = this.#listener): Promise<void> {
    this.#listener = listener
    for await (const { number } of eachRecord(this.#store, 'tenant', 0))
      for (const { kind } of Object.values(this.#channels)) await this.#findDue(kind, number)
  }

  /** Tells the listener of another queue, which is at the same server. */
  shareListener(other: DeliveryQueue): void {
    this.publicUrl = other.publicUrl
    this.#listener = other.#listener
  }

  /** Finishes what is under way; a command first attempts all that was enqueued, a server goes on at its next start. */
  async close(): Promise<void> {
    const finish = () => this.settle().catch(() => undefined)
    if (this.#listener === undefined) await finish()
    this.#isClosed = true
    const timer = setTimeout(() => {
      for (const channel of Object.values(this.#channels)) channel.abort()
    }, STOP_MS)
    await finish()
    clearTimeout(timer)
  }

  /** Oldest first. */
  async #findDue(kind: Kind, tenant: number): Promise<void> {
    const { records, now } = await this.#look(async (reader) => {
      const waiting: Queued[] = await readAll(reader, kind, tenant, WAITING)
      return { records: waiting.reverse(), now: reader.now }
    })
    for (const record of records) {
      const waiting = { kind, tenant, lane: this.#channels[kind].laneOf(record), id: record.id }
      this.#schedule(waiting, record, now, RESUMED_MS)
    }
  }

  #start(name: string, lane: Lane): void {
    while (lane.left.length > 0 && !this.#isClosed) {
      const [waiting] = lane.left as [Waiting]
      const channel = this.#channels[waiting.kind]
      if (lane.running >= channel.atOnce) return
      lane.left.shift()
      lane.running++
      const end = () => {
        lane.running--
        this.#known.delete(keyOf(waiting))
        this.#start(name, lane)
        if (lane.running === 0 && this.#lanes.delete(name)) channel.rest?.(waiting.tenant)
      }
      this.#track(this.#attempt(waiting, lane, channel).finally(end))
    }
  }

  #track(work: Promise<void>): void {
    const running = work
      .catch((error) => void (this.#listener ? this.#listener.fault(error) : this.#faults.push(error)))
      .then(() => void this.#running.delete(running))
    this.#running.add(running)
  }

  async #attempt(waiting: Waiting, lane: Lane, channel: AnyChannel): Promise<void> {
    const record = await this.#claim(waiting, channel)
    if (record === undefined) return
    const { change, isOfLane, notice } = await channel.send(waiting.tenant, record)
    const tried = [waiting, ...(isOfLane ? lane.left.splice(0) : [])]
    // A crash between the answer and this write leads to a second attempt with the same id.
    await this.#change(tried, async (found, writer, enqueue) =>
      found.id === record.id || isDue(found, writer.now) ? change(found, writer, enqueue) : undefined,
    )
    for (const each of tried) this.#known.delete(keyOf(each))
    if (notice !== undefined) this.#listener?.notice(notice(tried.length))
  }

  /** The record if it is due. In a shared store it is leased: it is due again after the lease, and not to other servers. */
  async #claim(waiting: Waiting, { leaseMs }: AnyChannel): Promise<Queued | undefined> {
    const { kind, tenant, id } = waiting
    if (!this.#store.isShared)
      return this.#look(async (reader) => {
        const isThere = (await reader.get('tenant', 0, String(tenant))) !== undefined
        const record = isThere ? await reader.get(kind, tenant, id) : undefined
        return record && isDue(record, reader.now) ? record : undefined
      })
    let leased: Queued | undefined
    await this.#change([waiting], async (found, { now }) => {
      leased = isDue(found, now) ? found : undefined
      return leased && { ...found, due_at: formatDate(now + leaseMs) }
    })
    return leased
  }

  /** A unit that reads. On disk only writers see what is not synced yet, such as the event of a read. */
  #look<T>(work: (reader: StoreReader) => Promise<T>): Promise<T> {
    return this.#store.isShared ? this.#store.read(work) : this.#store.write(work, 'soon')
  }

  /** Stores what `change` makes of each; undefined leaves it. What was deleted meanwhile is ignored. */
  async #change(waiting: readonly Waiting[], change: Outcome<Kind>['change']): Promise<void> {
    const { stored, more, now } = await this.#store.write(async (writer) => {
      const stored: [Waiting, Queued][] = []
      const more: Waiting[] = []
      for (const each of waiting) {
        const { kind, tenant, id } = each
        if ((await writer.get('tenant', 0, String(tenant))) === undefined) continue
        const found = await writer.get(kind, tenant, id)
        const record = found && (await change(found, writer, (some) => more.push(...some)))
        if (record === undefined) continue
        await writer.replace(kind, tenant, record, this.#channels[kind].putOptions?.(record))
        stored.push([each, record])
      }
      return { stored, more, now: writer.now }
    })
    this.#add(more)
    for (const [each, record] of stored) this.#schedule(each, record, now)
  }

  /** Attempts it when it is due, within `maxMs`, if the clock goes on until then; else a {@link resume} does. */
  #schedule(waiting: Waiting, record: Queued, now: number, maxMs = Number.POSITIVE_INFINITY): void {
    const dueMs = Date.parse(record.due_at ?? '') - now
    if (record.state !== 'waiting' || !(dueMs <= maxMs)) return
    if (dueMs <= 0) this.#add([waiting])
    else if (this.#listener !== undefined) setTimeout(() => this.#add([waiting]), dueMs).unref()
  }
}

const keyOf = ({ kind, tenant, lane, id }: Waiting) => [kind, tenant, lane, id].join('/')

function isDue({ state, due_at = '' }: Queued, now: number): boolean {
  return state === 'waiting' && Date.parse(due_at) <= now
}
