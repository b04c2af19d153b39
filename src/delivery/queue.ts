/**
 * Delivers records, such as mails and events, after their commit. Each record contains the state of its delivery, so
 * the queue continues after a restart. A lane contains the records for one destination, such as a webhook.
 */
import { formatDate, minuteOf } from '../domain/dates.js'
import type { RecordOf, TenantRecord } from '../domain/records/records.js'
import type { DeliveryPort, Lane, Waiting, WaitingRecord } from '../framework/ports/deliveries.js'
import {
  type Condition,
  eachRecord,
  type PutOptions,
  type SeekSearch,
  type Store,
  type StoreWriter,
} from '../storage/store.js'
import { Listeners } from './listeners.js'

/** A closing queue aborts attempts in progress after this time. */
const STOP_MS = 2_000
const RESUMED_MS = 30_000
const MINUTE_MS = 60_000
/** If two calls of `resume` are further apart than this, the second call reads all waiting records. */
const LONGEST_SPAN_MS = 10 * MINUTE_MS
/** Must be less than 24 days, because Node runs a timer with a longer delay immediately. */
const LONGEST_TIMER_MS = 24 * 60 * MINUTE_MS
const AT_ONCE = 100
/** A lane has the ids of at most this many batches in memory, and finds further batches in the store. */
const MAX_BATCHES = 1000
const WAITING: Condition = { field: 'state', value: 'waiting' }

type Enqueue = DeliveryPort['enqueue']
type Kind = Lane['kind']
type Queued = RecordOf[Kind]

export interface Outcome<K extends Kind> {
  /** Returns the record to store, or undefined if nothing changes. Enqueued deliveries start after the commit. */
  change(record: RecordOf[K], writer: StoreWriter, enqueue: Enqueue): Promise<RecordOf[K] | undefined>
  /** If true, `change` is called for each due record of the lane. */
  isOfLane?: boolean
  /** Closes the lane. While a lane is closed, the queue tries only one of its records every 30 s. */
  closes?: boolean
  /** Opens the lane, so that its waiting records are tried now. */
  opens?: boolean
  notice?(count: number): string
}

export interface Taken<K extends Kind> {
  records: RecordOf[K][]
  left: string[]
  /** When more records can be taken: `now`, `later` (in 30 s), or `none` if the store has no more. */
  more: 'now' | 'later' | 'none'
  closes?: boolean
  notice?: string
}

export interface Channel<K extends Kind> {
  readonly kind: K
  readonly atOnce: number
  /** If true, a jump of the clock processes these records in the order of their due times. */
  readonly isOrdered?: boolean
  /** The lease of a record must be longer than any attempt. */
  readonly leaseMs: number
  laneOf(record: RecordOf[K]): string
  putOptions?(record: RecordOf[K]): PutOptions
  send(tenant: number, record: RecordOf[K]): Promise<Outcome<K>>
  readonly batches?: BatchChannel<K>
  /** Called when a lane of the tenant has nothing left to deliver now. */
  rest?(tenant: number): void
  abort(): void
}

export interface BatchChannel<K extends Kind> {
  /** The first call of `bound` comes after this many records were enqueued in a lane, or earlier. */
  readonly boundAfter: number
  lanesOf(tenant: TenantRecord): string[]
  whereLane(lane: string): Condition
  /** Takes at most `most` records out of the batches with these `ids`. If `ids` is empty, uses the oldest batches. */
  take(lane: Lane, from: { ids: readonly string[]; most: number }): Promise<Taken<K>>
  /** Drops waiting records beyond the limit. After `next` further records, the queue calls `bound` again. */
  bound(lane: Lane): Promise<{ next: number; notice?: string | undefined }>
  tidy(tenant: number): Promise<void>
}

/** Records with the same due time `at`, in ms since the epoch. */
export interface DueGroup {
  at: number
  records: WaitingRecord[]
}

// biome-ignore lint/suspicious/noExplicitAny: the queue gives a channel records of its own kind only.
type AnyChannel = Channel<any>
type Listener = { notice(text: string): void; fault(error: unknown): void }

class LaneState {
  readonly lane: Lane
  readonly channel: AnyChannel
  running = 0
  readonly due: string[] = []
  readonly known = new Set<string>()
  batches: string[] = []
  /** True if the store may contain batches of the lane that are missing in `batches`. */
  isBehind = false
  isTaking = false
  /** The number of attempts that are reserved for records that the queue is taking out of batches. */
  reserved = 0
  /** If true, no batch is taken until `resume`, a timer or an outcome resets this flag. */
  isHeld = false
  hasTimer = false
  isClosed = false
  /** This many records may still be enqueued in batches before `bound` is called. */
  spare: number

  constructor(lane: Lane, channel: AnyChannel) {
    this.lane = lane
    this.channel = channel
    this.spare = channel.batches?.boundAfter ?? Number.POSITIVE_INFINITY
  }

  get free(): number {
    return this.channel.atOnce - this.running - this.reserved
  }

  get mayTake(): boolean {
    const isReady = !this.isClosed && !this.isHeld && !this.isTaking && this.free > 0
    return isReady && this.due.length === 0 && (this.isBehind || this.batches.length > 0)
  }

  get isIdle(): boolean {
    const isKept = this.isTaking || this.isClosed || this.isHeld || this.isBehind || this.batches.length > 0
    return this.running === 0 && this.due.length === 0 && !isKept
  }

  close(): void {
    this.isClosed = true
    for (const id of this.due.splice(0)) this.known.delete(id)
    // After the lane is opened, its batches are read from the store again.
    this.batches = []
    this.isBehind = true
  }
}

export class DeliveryQueue implements DeliveryPort {
  #publicUrl: string | undefined
  readonly #store: Store
  readonly #channels: Readonly<Record<Kind, AnyChannel>>
  readonly #generation: () => number
  readonly #lanes = new Map<string, LaneState>()
  readonly #running = new Set<Promise<void>>()
  readonly #listeners = new Listeners()
  readonly #timers = new Map<string, string>()
  /** Undefined in a command, which tries each record only once. */
  #listener: Listener | undefined
  #faults: unknown[] = []
  #isClosed = false
  /** The last search has found all records that are due by `until`, in this generation of the data. */
  #seen: { until: number; generation: number } | undefined

  /** `generation` returns a number that changes when all data is replaced. */
  constructor(store: Store, channels: (queue: DeliveryQueue) => AnyChannel[], generation = () => 0) {
    this.#store = store
    const byKind = channels(this).map((channel) => [channel.kind, channel])
    this.#channels = Object.fromEntries(byKind)
    this.#generation = generation
  }

  /** In a command, also attempts the waiting records that earlier commands left. */
  enqueue(waiting: readonly Waiting[]): void {
    for (const each of waiting) this.#listeners.note(nameOf(each))
    if (this.#listener !== undefined) this.#add(waiting)
    else {
      // Batches are added by their ids, because the search does not find unsynced records, such as the event of a read
      // operation.
      this.#add(waiting.filter((each) => 'batch' in each))
      for (const tenant of new Set(waiting.map((each) => each.tenant))) this.#track(this.#findOf(tenant))
    }
  }

  changesOf(lane: Lane): number {
    return this.#listeners.changesOf(nameOf(lane))
  }

  awaitChange(lane: Lane, since: number, ms: number): Promise<number> {
    return this.#listeners.awaitChange(nameOf(lane), since, ms)
  }

  silenceOf(lane: Lane): number | undefined {
    return this.#listeners.silenceOf(nameOf(lane))
  }

  /** Ends all waits of listeners, because a wait would delay the stop of the server. */
  releaseListeners(): void {
    this.#listeners.release()
  }

  async settle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
    const [fault] = this.#faults.splice(0)
    if (fault !== undefined) throw fault
  }

  /** Starts all due deliveries. A server calls this function with a listener at its start, and then every 30 s. */
  async resume(listener = this.#listener): Promise<void> {
    this.#listener = listener
    const generation = this.#generation()
    const now = await this.#store.read(async (reader) => reader.now)
    const until = now + RESUMED_MS
    const seen = this.#seen?.generation === generation ? this.#seen.until : undefined
    const isKnown = seen !== undefined && seen <= until && until - seen <= LONGEST_SPAN_MS
    // The searched period begins before `seen`, because another server may have added records that were due earlier.
    const where = isKnown ? dueWithin(seen - RESUMED_MS - MINUTE_MS, until) : WAITING
    for await (const tenant of eachRecord(this.#store, 'tenant', 0)) {
      await this.#findAll(tenant, where)
      this.#look(tenant, !isKnown)
    }
    this.#seen = { until, generation }
    // Wakes all listeners, because a test may have moved the clock, and retries may be due now.
    this.#listeners.noteAll()
  }

  /** Groups the waiting records of ordered channels that are due by `until`. Returns the `most` earliest groups. */
  async findOrdered(until: number, most: number): Promise<DueGroup[]> {
    const groups = new Map<number, WaitingRecord[]>()
    for await (const { number: tenant } of eachRecord(this.#store, 'tenant', 0))
      for (const { kind, isOrdered } of Object.values(this.#channels))
        if (isOrdered)
          for await (const { waiting, record } of this.#eachWaiting(kind, tenant, WAITING)) {
            const at = Date.parse(record.due_at ?? '')
            if (at > until || Number.isNaN(at)) continue
            const group = groups.get(at)
            if (group === undefined) groups.set(at, [waiting])
            else group.push(waiting)
          }
    const sorted = [...groups].sort(([a], [b]) => a - b).slice(0, most)
    return sorted.map(([at, records]) => ({ at, records }))
  }

  /** Attempts the records that are due, and then the deliveries that these attempts have enqueued. */
  async attempt(records: readonly WaitingRecord[]): Promise<void> {
    this.#add(records)
    await this.settle()
  }

  /** The address of the server. Links in mail begin with this address, unless the settings name another address. */
  get publicUrl(): string | undefined {
    return this.#publicUrl
  }

  listenAt(url: string): void {
    this.#publicUrl = url
  }

  shareListener(other: DeliveryQueue): void {
    this.#publicUrl = other.publicUrl
    this.#listener = other.#listener
  }

  /**
   * Finishes attempts in progress. A command first attempts everything that was enqueued. A server leaves waiting
   * records in the store until its next start.
   */
  async close(): Promise<void> {
    const finish = () => this.settle().catch(() => undefined)
    if (this.#listener === undefined) await finish()
    this.#isClosed = true
    this.releaseListeners()
    const timer = setTimeout(() => {
      for (const channel of Object.values(this.#channels)) channel.abort()
    }, STOP_MS)
    await finish()
    clearTimeout(timer)
  }

  async #findOf(number: number): Promise<void> {
    const tenant = await this.#store.read((reader) => reader.get('tenant', 0, String(number)))
    if (tenant === undefined) return
    await this.#findAll(tenant, WAITING)
    this.#look(tenant, false)
  }

  async #findAll(tenant: TenantRecord, where: Condition): Promise<void> {
    for (const { kind, batches } of Object.values(this.#channels))
      if (batches === undefined || batches.lanesOf(tenant).length > 0)
        await this.#findDue(kind, tenant.number, where)
  }

  #look(tenant: TenantRecord, counts: boolean): void {
    const { number } = tenant
    for (const { kind, batches } of Object.values(this.#channels)) {
      const lanes = batches?.lanesOf(tenant) ?? []
      for (const lane of lanes) {
        const state = this.#stateOf({ kind, tenant: number, lane })
        if (counts) this.#bound(state)
        this.#wake(state)
      }
      if (lanes.length > 0 && this.#listener !== undefined) this.#track(batches!.tidy(number))
    }
  }

  #wake(state: LaneState): void {
    state.isBehind = true
    state.isHeld = false
    if (state.isClosed) this.#probe(state)
    else this.#start(state)
  }

  /**
   * Does nothing in a command. Uses a timer, because queues of the library and of forks have a listener too, but only a
   * server calls `resume` every 30 s.
   */
  #wakeLater(state: LaneState): void {
    if (this.#listener === undefined || state.hasTimer) return
    state.hasTimer = true
    const wake = () => {
      state.hasTimer = false
      if (!this.#isClosed) this.#wake(state)
    }
    setTimeout(wake, RESUMED_MS).unref()
  }

  #bound(state: LaneState): void {
    const { batches } = state.channel
    if (batches === undefined) return
    // `spare` is reset first, so that `bound` is not called again while it runs.
    state.spare = batches.boundAfter
    const work = async () => {
      const { next, notice } = await batches.bound(state.lane)
      state.spare = next
      if (notice !== undefined) this.#listener?.notice(notice)
    }
    this.#track(work())
  }

  async #findDue(kind: Kind, tenant: number, where: Condition): Promise<void> {
    for await (const { waiting, record, now } of this.#eachWaiting(kind, tenant, where))
      this.#schedule(waiting, record, now)
  }

  async *#eachWaiting(kind: Kind, tenant: number, where: Condition) {
    const channel = this.#channels[kind]
    for (let above: number | undefined = -1; above !== undefined; ) {
      const page = await this.#readPage(kind, tenant, { where, above, size: AT_ONCE })
      for (const record of page.records) {
        const waiting = { kind, tenant, lane: channel.laneOf(record), id: record.id }
        yield { waiting, record, now: page.now }
      }
      above = page.last
    }
  }

  #readPage(kind: Kind, tenant: number, query: SeekSearch) {
    return this.#store.read(async (reader) => {
      const locations = await reader.seek(kind, tenant, query)
      const records: Queued[] = []
      for (const location of locations) {
        const record = await reader.open(location)
        if (record !== undefined) records.push(record)
      }
      const last = locations.length < query.size ? undefined : locations.at(-1)!.seq
      return { records, last, now: reader.now }
    })
  }

  #stateOf({ kind, tenant, lane }: Lane): LaneState {
    const name = [kind, tenant, lane].join('/')
    const state = this.#lanes.get(name) ?? new LaneState({ kind, tenant, lane }, this.#channels[kind])
    this.#lanes.set(name, state)
    return state
  }

  #add(waiting: readonly Waiting[]): void {
    if (this.#isClosed) return
    for (const each of waiting) {
      const state = this.#stateOf(each)
      if ('batch' in each) this.#addBatch(state, each.batch)
      else if (!('id' in each)) this.#wake(state)
      else if (!state.isClosed && !state.known.has(each.id)) {
        state.known.add(each.id)
        state.due.push(each.id)
      }
      this.#start(state)
    }
  }

  #addBatch(state: LaneState, { id, count }: { id: string; count: number }): void {
    if (state.isClosed || state.batches.length >= MAX_BATCHES) state.isBehind = true
    else state.batches.push(id)
    state.spare -= count
    if (state.spare <= 0) this.#bound(state)
  }

  #start(state: LaneState): void {
    if (this.#isClosed) return
    while (!state.isClosed && state.due.length > 0 && state.free > 0) {
      const id = state.due.shift()!
      this.#run(state, id, () => this.#claim({ ...state.lane, id }, state.channel))
    }
    if (state.mayTake) this.#take(state)
    if (state.isIdle && this.#lanes.delete(nameOf(state.lane))) state.channel.rest?.(state.lane.tenant)
  }

  #run(state: LaneState, id: string, claim: () => Promise<Queued | undefined>): void {
    state.known.add(id)
    state.running++
    const work = async () => {
      const record = await claim()
      if (record !== undefined) await this.#attempt(state, record)
    }
    const end = () => {
      state.running--
      state.known.delete(id)
      this.#start(state)
    }
    this.#track(work().finally(end))
  }

  #track(work: Promise<void>): void {
    const fail = (error: unknown) => {
      // The next `resume` reads all waiting records, so that it finds the record of the failed work again.
      this.#seen = undefined
      if (this.#listener !== undefined) this.#listener.fault(error)
      else this.#faults.push(error)
    }
    const running = work.catch(fail).then(() => void this.#running.delete(running))
    this.#running.add(running)
  }

  #take(state: LaneState): void {
    state.isTaking = true
    state.reserved = state.free
    const work = async () => {
      const { records, more, closes } = await this.#takeFrom(state, state.reserved)
      state.reserved = 0
      for (const record of records) this.#run(state, record.id, async () => record)
      // A command checks the limit of waiting records here, because a command does not call `resume`.
      if ((more === 'later' || closes) && this.#listener === undefined) this.#bound(state)
    }
    const end = () => {
      state.isTaking = false
      state.reserved = 0
      this.#start(state)
    }
    const fail = (error: unknown) => {
      state.isBehind = true
      state.isHeld = true
      this.#wakeLater(state)
      throw error
    }
    this.#track(work().catch(fail).finally(end))
  }

  async #takeFrom(state: LaneState, most: number): Promise<Taken<Kind>> {
    const ids = state.batches.splice(0, AT_ONCE)
    const isOfStore = ids.length === 0
    if (isOfStore) state.isBehind = false
    const taken: Taken<Kind> = await state.channel.batches!.take(state.lane, { ids, most })
    const { left, more, closes, notice } = taken
    state.batches.unshift(...left)
    if (more !== 'none') state.isBehind ||= isOfStore || more === 'later'
    if (more === 'later') state.isHeld = true
    if (closes) state.close()
    if (state.isHeld || state.isClosed) this.#wakeLater(state)
    if (notice !== undefined) this.#listener?.notice(notice)
    return taken
  }

  /** Tries one record of a closed lane, to find out if the lane can be opened. Opens the lane if no record waits. */
  #probe(state: LaneState): void {
    if (state.isTaking || state.running > 0) return
    state.isTaking = true
    const work = async () => {
      const { records, closes } = await this.#takeFrom(state, 1)
      if (closes) return
      const [taken] = records
      const found = taken === undefined ? await this.#findOldest(state) : undefined
      if (taken !== undefined) this.#run(state, taken.id, async () => taken)
      else if (found !== undefined)
        this.#run(state, found, () => this.#claim({ ...state.lane, id: found }, state.channel))
      else this.#open(state)
    }
    const end = () => {
      state.isTaking = false
      this.#start(state)
    }
    this.#track(work().finally(end))
  }

  async #findOldest({ lane: { kind, tenant, lane }, channel }: LaneState): Promise<string | undefined> {
    const where = { and: [channel.batches!.whereLane(lane), WAITING] }
    const { records } = await this.#readPage(kind, tenant, { where, above: -1, size: 1 })
    return records[0]?.id
  }

  #open(state: LaneState): void {
    const { lane, channel } = state
    state.isClosed = false
    state.isHeld = false
    if (channel.batches === undefined) return
    state.isBehind = true
    const where = { and: [channel.batches.whereLane(lane.lane), WAITING] }
    this.#track(this.#findDue(lane.kind, lane.tenant, where))
  }

  async #attempt(state: LaneState, record: Queued): Promise<void> {
    const { lane, channel } = state
    const { change, isOfLane, closes, opens, notice } = await channel.send(lane.tenant, record)
    const ids = [record.id, ...(isOfLane ? state.due.splice(0) : [])]
    if (closes) {
      state.close()
      this.#wakeLater(state)
    }
    const tried = ids.map((id) => ({ ...lane, id }))
    // After a crash between the answer of the destination and this write, the record is sent again with the same id.
    for (let from = 0; from < tried.length; from += AT_ONCE)
      await this.#change(tried.slice(from, from + AT_ONCE), async (found, writer, enqueue) =>
        found.id === record.id || isDue(found, writer.now) ? change(found, writer, enqueue) : undefined,
      )
    for (const id of ids) state.known.delete(id)
    if (!closes && (opens || state.isClosed)) this.#open(state)
    if (notice !== undefined) this.#listener?.notice(notice(tried.length))
  }

  /** Returns the record if it is due. In a shared store, also leases the record, so that no other server sends it. */
  async #claim(waiting: WaitingRecord, { leaseMs }: AnyChannel): Promise<Queued | undefined> {
    const { kind, tenant, id } = waiting
    if (!this.#store.isShared)
      // `read` would not return unsynced records, such as the event of a read operation.
      return this.#store.write(async (reader) => {
        const isThere = (await reader.get('tenant', 0, String(tenant))) !== undefined
        const record = isThere ? await reader.get(kind, tenant, id) : undefined
        return record && isDue(record, reader.now) ? record : undefined
      }, 'soon')
    let leased: Queued | undefined
    await this.#change([waiting], async (found, { now }) => {
      leased = isDue(found, now) ? found : undefined
      return leased && { ...found, due_at: formatDate(now + leaseMs) }
    })
    return leased
  }

  /** Calls `change` for each record that still exists, and stores the records that `change` returns. */
  async #change(waiting: readonly WaitingRecord[], change: Outcome<Kind>['change']): Promise<void> {
    const { stored, more, now } = await this.#store.write(async (writer) => {
      const stored: [WaitingRecord, Queued][] = []
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

  /**
   * Starts a timer that attempts the record when it is due. If this process is a command, or if the record is due after
   * more than {@link LONGEST_TIMER_MS}, no timer is started. A later {@link resume} then attempts the record.
   */
  #schedule(waiting: WaitingRecord, record: Queued, now: number): void {
    const dueMs = Date.parse(record.due_at ?? '') - now
    if (record.state !== 'waiting' || Number.isNaN(dueMs)) return
    if (dueMs <= 0) return void this.#add([waiting])
    if (dueMs > LONGEST_TIMER_MS) return
    const key = `${nameOf(waiting)}/${waiting.id}`
    if (this.#listener === undefined || this.#timers.get(key) === record.due_at) return
    this.#timers.set(key, record.due_at!)
    const add = () => {
      if (this.#timers.get(key) === record.due_at) this.#timers.delete(key)
      this.#add([waiting])
    }
    setTimeout(add, dueMs).unref()
  }
}

const nameOf = ({ kind, tenant, lane }: Lane) => [kind, tenant, lane].join('/')

/** Matches whole minutes, because the index of due dates contains only minutes. */
function dueWithin(from: number, until: number): Condition {
  const or: Condition[] = []
  for (let ms = Math.floor(from / MINUTE_MS) * MINUTE_MS; ms <= until; ms += MINUTE_MS)
    or.push({ field: 'due', value: minuteOf(formatDate(ms)) })
  return { or }
}

function isDue({ state, due_at = '' }: Queued, now: number): boolean {
  return state === 'waiting' && Date.parse(due_at) <= now
}
