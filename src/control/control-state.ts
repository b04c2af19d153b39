import { setTimeout } from 'node:timers/promises'
import type { Clock } from '../crypto/ports.js'
import { formatDate } from '../domain/dates.js'
import { isObject } from '../domain/json/json.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import { randomKey } from '../domain/text/base58.js'
import { suggestName } from '../domain/text/nearest.js'
import { CofferError, invalid } from '../errors.js'
import type { ClockState, ControlPlane, FaultRule, Fork, RequestFilter } from '../framework/ports/control.js'
import type { ReactorOptions } from '../framework/ports/reactors.js'
import type { App } from '../vault/app.js'
import type { MemoryState, MemoryVault } from '../vault/memory-vault.js'
import { type EphemeralOptions, openEphemeral } from '../vault/open.js'
import { type SeededApplications, seedVault } from '../vault/sample-applications.js'
import { Faults } from './faults.js'
import { Requests } from './requests.js'

const MAX_SNAPSHOTS = 100
const MAX_FORKS = 100
const ASKED_EVERY_MS = 20
/** A jump of the clock stops at most this many times, because each stop takes a few milliseconds. */
const MAX_STOPS = 1000
/** An expiry date can be a year later than the clock, and the year of this date must have four digits. */
const CLOCK_END = Date.UTC(9999, 0)

/** `blank`: the state before the seed was applied. Undefined in a fork. */
interface InMemory {
  memory: MemoryVault
  clock: TestClock
  names: ReadonlyMap<string, string>
  start: MemoryState
  blank?: MemoryState
  applications?: SeededApplications
}

/**
 * Opens a vault in memory with the contents of `seed`. A reset restores these contents. `acceptsTestKeys`: whether API
 * keys in the seed may have the form of test keys. `dependencies`: absolute paths of projects. The seed's reactors may
 * declare the packages of these projects.
 */
export async function openControlled(
  {
    dependencies,
    ...options
  }: EphemeralOptions & Pick<ReactorOptions, 'dependencies'> & { acceptsTestKeys?: boolean },
  seed: unknown,
) {
  const clock = new TestClock(options.clock ?? Date.now)
  const memory = await openEphemeral({ ...options, clock: clock.now, clockEnd: clock.end })
  try {
    if (dependencies !== undefined) {
      memory.app.configureReactors({ dependencies })
      // Loads the linker now, so that a wrong directory is reported at the start and not when the first reactor is
      // created.
      await memory.app.linker()
    }
    if (options.acceptsTestKeys === true) memory.app.acceptTestKeys()
    const blank = await memory.save()
    const applications = await seedVault(memory.app, seed)
    const start = await memory.save()
    const inMemory = { memory, clock, names: namesOf(applications), start, blank, applications }
    const control = new ControlState(memory.app, inMemory)
    control.nameSeed(seed)
    memory.app.attachControl(control)
    return { control, applications }
  } catch (error) {
    await memory.app.close()
    throw error
  }
}

function namesOf(applications: SeededApplications): Map<string, string> {
  return new Map(Object.entries(applications).map(([name, { id }]) => [id, name]))
}

export class ControlState implements ControlPlane {
  readonly app: App
  readonly faults = new Faults()
  readonly requests = new Requests()
  /**
   * Each request shares this lock, and a change of state holds the lock alone. Therefore a request never sees half of a
   * change.
   */
  readonly lock = new ReadersWriterLock()
  readonly forks = new Map<string, ControlState & { fact: Fork }>()
  readonly fact: Fork | undefined
  seedName: string | undefined
  readonly #inMemory: InMemory | undefined
  readonly #clock: TestClock | undefined
  readonly #snapshots = new Map<string, MemoryState>()

  /** `clock`: given for a vault on disk if tests may move its clock. */
  constructor(app: App, inMemory?: InMemory, fact?: Fork, clock = inMemory?.clock) {
    this.app = app
    this.#inMemory = inMemory
    this.#clock = clock
    this.fact = fact
    if (clock !== undefined) app.configureReactors({ time: () => clock.shift })
  }

  now(): number {
    return this.#clock?.now() ?? Date.now()
  }

  createKey(): string {
    return randomKey(this.app.random, 'ctl_')
  }

  /** Links in mail begin with this address, unless the setting `public_url` has a value. */
  listenAt(url: string): void {
    this.app.deliveries.listenAt(url)
    for (const fork of this.forks.values()) fork.listenAt(url)
  }

  /** Answers waiting listeners, so that the server can stop at once. */
  releaseListeners(): void {
    this.app.deliveries.releaseListeners()
    for (const fork of this.forks.values()) fork.releaseListeners()
  }

  get hasState(): boolean {
    return this.#inMemory !== undefined
  }

  get hasClock(): boolean {
    return this.#clock !== undefined
  }

  async reset(): Promise<void> {
    const { memory, clock, start } = this.#require()
    await this.lock.exclusive(async () => {
      clock.set('real')
      await memory.restore(start)
      this.faults.set([])
      this.requests.clear()
    })
    await this.#doDue()
  }

  nameSeed(seed: unknown): void {
    this.seedName = isObject(seed) && typeof seed.name === 'string' ? seed.name : undefined
  }

  /**
   * Resets the vault to the contents of another seed, but keeps forks and snapshots. An application with the same name
   * as before keeps its key. If the seed is refused, nothing changes. Resolves to the applications with new names.
   * @throws CofferError like `seed apply`
   */
  async reseed(seed: unknown): Promise<SeededApplications> {
    const inMemory = this.#require()
    const { memory, clock, blank, applications: kept = {} } = inMemory
    if (blank === undefined) throw new CofferError('unprocessable', 'A fork cannot be reset to another seed.')
    const applied = await this.lock.exclusive(async () => {
      const [before, time] = [await memory.save(), clock.copy()]
      try {
        clock.set('real')
        await memory.restore(blank)
        const applications = await seedVault(memory.app, seed, kept)
        Object.assign(inMemory, { start: await memory.save(), applications, names: namesOf(applications) })
        return applications
      } catch (error) {
        clock.set(time.state.mode, time.now())
        await memory.restore(before)
        throw error
      }
    })
    this.nameSeed(seed)
    this.faults.set([])
    this.requests.clear()
    await this.#doDue()
    return Object.fromEntries(Object.entries(applied).filter(([name]) => kept[name] === undefined))
  }

  async saveSnapshot(name: string): Promise<void> {
    const { memory } = this.#require()
    if (!this.#snapshots.has(name)) refuseMore(this.#snapshots, MAX_SNAPSHOTS, 'snapshots')
    this.#snapshots.set(name, await this.lock.exclusive(() => memory.save()))
  }

  listSnapshots(): string[] {
    this.#require()
    return [...this.#snapshots.keys()]
  }

  async restoreSnapshot(name: string): Promise<void> {
    const { memory } = this.#require()
    const snapshot = this.#snapshots.get(name)
    if (snapshot === undefined) throw unknown('snapshot with this name')
    await this.lock.exclusive(() => memory.restore(snapshot))
  }

  deleteSnapshot(name: string): void {
    this.#require()
    if (!this.#snapshots.delete(name)) throw unknown('snapshot with this name')
  }

  async fork(called?: string): Promise<Fork> {
    const { memory, clock, names, start } = this.#require()
    refuseMore(this.forks, MAX_FORKS, 'forks')
    const own = clock.copy()
    const forked = await memory.fork(start, own)
    const { app } = forked.memory
    const { id, name } = await app.tenant()
    const keys = Object.entries(forked.keys).map(([application, key]) => [names.get(application), key])
    const fact = {
      ...{ id, ...omitUndefined({ name: called }), tenant: { id, name } },
      keys: Object.fromEntries(keys) as Fork['keys'],
    }
    const inMemory = { memory: forked.memory, clock: own, names, start: await forked.memory.save() }
    const control = new ControlState(app, inMemory, fact)
    app.attachControl(control)
    app.deliveries.shareListener(this.app.deliveries)
    this.forks.set(id, control as ControlState & { fact: Fork })
    return fact
  }

  listForks(): Fork[] {
    this.#require()
    return [...this.forks.values()].map(({ fact }) => fact)
  }

  findFork(id: string): ControlState {
    const fork = this.forks.get(id)
    if (fork !== undefined) return fork
    throw unknown('fork with this id')
  }

  async deleteFork(id: string): Promise<void> {
    this.#require()
    const fork = this.findFork(id)
    this.forks.delete(id)
    fork.app.beginGeneration()
    await fork.close()
  }

  readClock(): ClockState {
    return this.#requireClock().state
  }

  async setClock(mode: ClockState['mode'], at?: number): Promise<ClockState> {
    return this.#jump((clock) => clock.set(mode, at))
  }

  async advanceClock(ms: number): Promise<ClockState> {
    return this.#jump((clock) => clock.advance(ms))
  }

  listFaults() {
    return this.faults.rules
  }

  async setFaults(rules: readonly FaultRule[]): Promise<void> {
    for (const [at, { operation }] of rules.entries())
      await requireOperation(`rules[${at}].operation`, operation)
    this.faults.set(rules)
  }

  async findRequests(filter: RequestFilter, count: number, timeoutMs: number) {
    await requireOperation('operation', filter.operation)
    return this.requests.find(filter, count, timeoutMs)
  }

  listNotEmulated() {
    return this.requests.notEmulated
  }

  clearRequests(): void {
    this.requests.clear()
  }

  async waitUntil(isSo: () => Promise<boolean>, timeoutMs: number): Promise<void> {
    const until = performance.now() + timeoutMs
    while (!(await isSo()) && performance.now() < until) await setTimeout(ASKED_EVERY_MS)
  }

  async close(): Promise<void> {
    for (const fork of this.forks.values()) await fork.close()
    this.forks.clear()
    await this.app.close()
  }

  /**
   * Moves the clock. If the clock moves forward, it first stops at each time at which an ordered delivery is due, so
   * that the delivery sees the data of that time. Other due work is done at the end.
   */
  async #jump(move: (clock: TestClock) => void): Promise<ClockState> {
    const clock = this.#requireClock()
    const from = clock.now()
    move(clock)
    clock.beginSteps(from)
    try {
      const { generation } = this.app
      for (const { at, records } of await this.app.deliveries.findOrdered(clock.end(), MAX_STOPS)) {
        // A reset or a restored snapshot ends the jump, because the remaining `records` belong to the replaced data.
        if (this.app.generation !== generation) break
        clock.stepTo(at)
        await this.#purge()
        await this.app.deliveries.attempt(records)
      }
    } finally {
      clock.endSteps()
    }
    return this.#doDue()
  }

  /**
   * Purges expired records. First marks the new time as trusted, because a jump of the clock would delay the purge
   * otherwise.
   */
  async #purge(): Promise<void> {
    await this.app.store.write(async (writer) => writer.storeTime({ isTrusted: true }))
    while ((await this.app.sweep()) > 0) {}
  }

  async #doDue(): Promise<ClockState> {
    await this.#purge()
    await this.app.deliveries.resume()
    await this.app.deliveries.settle()
    return this.readClock()
  }

  #require(): InMemory {
    if (this.#inMemory !== undefined) return this.#inMemory
    throw onlyInMemory()
  }

  #requireClock(): TestClock {
    if (this.#clock !== undefined) return this.#clock
    throw onlyInMemory()
  }
}

function onlyInMemory(): CofferError {
  return new CofferError(
    'not_found',
    'Only a vault in memory can do this. Start one: coffer serve --ephemeral',
  )
}

function unknown(thing: string): CofferError {
  return new CofferError('not_found', `There is no ${thing}.`)
}

function refuseMore({ size }: { size: number }, most: number, things: string): void {
  if (size >= most)
    throw new CofferError('unprocessable', `A vault may have at most ${most} ${things}. Delete one.`)
}

/** @throws CofferError `validation` if no operation has this name */
async function requireOperation(path: string, name: string | undefined): Promise<void> {
  if (name === undefined) return
  // Imported late, so that the server starts sooner.
  const { registry } = await import('../operations/all.js')
  if (registry.find(name) !== undefined) return
  const names = registry.operations.map((each) => each.name)
  throw invalid(path, `is not the name of an operation${suggestName(name, names)}`)
}

/**
 * Many callers can share this lock, or one caller holds it alone. An exclusive caller waits until earlier callers have
 * finished, and later callers wait for the exclusive caller.
 */
class ReadersWriterLock {
  readonly #inside = new Set<Promise<unknown>>()
  #closed: Promise<unknown> | undefined

  async shared<T>(work: () => Promise<T>): Promise<T> {
    while (this.#closed !== undefined) await this.#closed
    const running = work()
    this.#inside.add(running)
    return running.finally(() => this.#inside.delete(running))
  }

  async exclusive<T>(work: () => Promise<T>): Promise<T> {
    while (this.#closed !== undefined) await this.#closed
    const running = Promise.allSettled(this.#inside).then(work)
    this.#closed = running.catch(() => undefined)
    return running.finally(() => {
      this.#closed = undefined
    })
  }
}

export class TestClock {
  readonly #real: Clock
  #offset = 0
  #frozen: number | undefined
  /** The time of the current step while the clock moves in steps. */
  #held: number | undefined
  #holders = 0

  constructor(real: Clock) {
    this.#real = real
  }

  /** ms since the epoch. */
  readonly now: Clock = () => this.#held ?? this.end()

  /** ms since the epoch. While the clock moves in steps, `end` returns the time at which the steps will end. */
  readonly end: Clock = () => this.#frozen ?? this.#real() + this.#offset

  get state(): ClockState {
    const mode = this.#frozen !== undefined ? 'frozen' : this.#offset === 0 ? 'real' : 'offset'
    const now = this.now()
    return { mode, now: formatDate(now), offset_ms: Math.round(now - this.#real()) }
  }

  set(mode: ClockState['mode'], at = this.now()): void {
    if (at >= CLOCK_END) throw invalid('at', 'is after the year 9998, the last year of the clock')
    this.#held = undefined
    this.#frozen = mode === 'frozen' ? at : undefined
    this.#offset = mode === 'offset' ? at - this.#real() : 0
  }

  get shift(): { offsetMs?: number; frozenMs?: number } {
    const fixed = this.#held ?? this.#frozen
    return fixed === undefined ? { offsetMs: this.now() - Date.now() } : { frozenMs: fixed }
  }

  advance(ms: number): void {
    if (this.end() + ms >= CLOCK_END)
      throw invalid('by', 'ends after the year 9998, the last year of the clock')
    if (this.#frozen === undefined) this.#offset += ms
    else this.#frozen += ms
  }

  /**
   * Holds the clock at `from` until `endSteps`, unless `from` is later than `end()`. If several callers hold the clock,
   * only the last call of `endSteps` releases the clock.
   */
  beginSteps(from: number): void {
    this.#holders++
    if (from < this.end()) this.#held ??= from
  }

  /** Has no effect after `set`, which releases the clock. */
  stepTo(at: number): void {
    if (this.#held !== undefined) this.#held = Math.min(Math.max(this.#held, at), this.end())
  }

  endSteps(): void {
    this.#holders--
    if (this.#holders === 0) this.#held = undefined
  }

  copy(): TestClock {
    const copy = new TestClock(this.#real)
    copy.set(this.state.mode, this.end())
    return copy
  }
}
