/** A vault's control plane: its clock, snapshots and forks if it is in memory, its faults and its latest requests. */
import { suggestName } from '../domain/text/nearest.js'
import { CofferError, invalid } from '../errors.js'
import type { ClockState, ControlPlane, FaultRule, Fork, RequestFilter } from '../framework/ports/control.js'
import type { EngineState } from '../storage/engine.js'
import type { App } from '../vault/app.js'
import type { MemoryVault } from '../vault/memory-vault.js'
import type { TestClock } from './clock.js'
import { Faults } from './faults.js'
import { ReadersWriterLock } from './readers-writer-lock.js'
import { Requests } from './requests.js'

const MOST_SNAPSHOTS = 100
const MOST_FORKS = 100

/** A vault in memory, whose state and clock can be set. */
interface Controlled {
  memory: MemoryVault
  clock: TestClock
  /** The names of the applications that the vault began with, by their ids. */
  names: ReadonlyMap<string, string>
}

export class ControlState implements ControlPlane {
  readonly app: App
  readonly faults = new Faults()
  readonly requests = new Requests()
  /** Requests share it, and a change of state has it alone: each sees the state before a change of it, or the one after. */
  readonly lock = new ReadersWriterLock()
  readonly forks = new Map<string, { plane: ControlState; facts: Fork }>()
  readonly #controlled: Controlled | undefined
  readonly #snapshots = new Map<string, EngineState>()
  #start: EngineState | undefined

  constructor(app: App, controlled?: Controlled) {
    this.app = app
    this.#controlled = controlled
    if (controlled !== undefined) app.configureReactors({ time: () => controlled.clock.shift })
  }

  now(): number {
    return this.#controlled?.clock.now() ?? Date.now()
  }

  /** Notes the present state as the one to reset to. */
  async begin(): Promise<this> {
    this.#start = await this.#controlled?.memory.save()
    return this
  }

  /** Links in mail begin with `url`, unless the settings name another one. */
  listenAt(url: string): void {
    this.app.mail.publicUrl = url
    for (const { plane } of this.forks.values()) plane.listenAt(url)
  }

  get hasState(): boolean {
    return this.#controlled !== undefined
  }

  async reset(): Promise<void> {
    const { memory, clock } = this.#require()
    await this.lock.exclusive(async () => {
      await memory.restore(this.#start!)
      clock.set('real')
      this.faults.set([])
      this.requests.clear()
    })
    await this.#settle()
  }

  async saveSnapshot(name: string): Promise<void> {
    const { memory } = this.#require()
    if (!this.#snapshots.has(name) && this.#snapshots.size >= MOST_SNAPSHOTS)
      throw new CofferError('unprocessable', `There are at most ${MOST_SNAPSHOTS} snapshots.`)
    this.#snapshots.set(name, await this.lock.exclusive(() => memory.save()))
  }

  listSnapshots(): string[] {
    this.#require()
    return [...this.#snapshots.keys()]
  }

  async restoreSnapshot(name: string): Promise<void> {
    const { memory } = this.#require()
    const snapshot = this.#snapshots.get(name)
    if (snapshot === undefined) throw new CofferError('not_found', 'There is no snapshot with this name.')
    await this.lock.exclusive(() => memory.restore(snapshot))
  }

  deleteSnapshot(name: string): void {
    this.#require()
    if (!this.#snapshots.delete(name))
      throw new CofferError('not_found', 'There is no snapshot with this name.')
  }

  async fork(): Promise<Fork> {
    const { memory, clock, names } = this.#require()
    if (this.forks.size >= MOST_FORKS)
      throw new CofferError('unprocessable', `There are at most ${MOST_FORKS} forks. Delete one.`)
    const own = clock.copy()
    const forked = await memory.fork(this.#start!, own.now)
    const plane = await new ControlState(forked.app, { memory: forked.memory, clock: own, names }).begin()
    forked.app.control = plane
    forked.app.mail.publicUrl = this.app.mail.publicUrl
    const { id, name } = await forked.app.tenant()
    const keys = Object.entries(forked.keys).map(([application, key]) => [names.get(application), key])
    const facts: Fork = { id, tenant: { id, name }, keys: Object.fromEntries(keys) }
    this.forks.set(id, { plane, facts })
    return facts
  }

  listForks(): Fork[] {
    this.#require()
    return [...this.forks.values()].map(({ facts }) => facts)
  }

  async deleteFork(id: string): Promise<void> {
    this.#require()
    const fork = this.forks.get(id)
    if (fork === undefined) throw new CofferError('not_found', 'There is no fork with this id.')
    this.forks.delete(id)
    fork.plane.app.generation++
    await fork.plane.close()
  }

  readClock(): ClockState {
    return this.#require().clock.state
  }

  async setClock(mode: ClockState['mode'], at?: number): Promise<ClockState> {
    this.#require().clock.set(mode, at)
    return this.#settle()
  }

  async advanceClock(ms: number): Promise<ClockState> {
    this.#require().clock.advance(ms)
    return this.#settle()
  }

  listFaults() {
    return this.faults.rules
  }

  /** @throws CofferError `validation` for an operation that there is not */
  async setFaults(rules: readonly FaultRule[]): Promise<void> {
    for (const [at, { operation }] of rules.entries())
      await requireOperation(`rules[${at}].operation`, operation)
    this.faults.set(rules)
  }

  /** @throws CofferError `validation` for an operation that there is not */
  async findRequests(filter: RequestFilter, count: number, timeoutMs: number) {
    await requireOperation('operation', filter.operation)
    return this.requests.find(filter, count, timeoutMs)
  }

  clearRequests(): void {
    this.requests.clear()
  }

  async close(): Promise<void> {
    for (const { plane } of this.forks.values()) await plane.close()
    this.forks.clear()
    await this.app.close()
  }

  /** Confirms the clock, so that its jump holds nothing back, purges what has expired, and sends mail that is due. */
  async #settle(): Promise<ClockState> {
    const { clock } = this.#require()
    await this.app.store.write(async (writer) => writer.noteTime({ isTrusted: true }))
    while ((await this.app.sweep()) > 0) {}
    await this.app.mail.catchUp()
    return clock.state
  }

  #require(): Controlled {
    if (this.#controlled !== undefined) return this.#controlled
    throw new CofferError('not_found', 'Only a vault in memory has this: coffer serve --ephemeral')
  }
}

/** A misspelled name would never fit a request. */
async function requireOperation(path: string, name: string | undefined): Promise<void> {
  if (name === undefined) return
  // Loaded when it is asked for, so that a server is ready without it.
  const { registry } = await import('../operations/all.js')
  if (registry.find(name) !== undefined) return
  const names = registry.operations.map((each) => each.name)
  throw invalid(path, `is not the name of an operation${suggestName(name, names)}`)
}
