/**
 * The distinct sets of containers that tokens have. A list of the tokens that access rules permit needs
 * one decision for each set, not for each token. A set is stored with its first token, and removed some time after no
 * token has the set any more.
 */
import { containerSet, containerSetId } from '../domain/access/container.js'
import { type Awaitable, andThen } from '../domain/awaitable.js'
import type { ContainerSetRecord } from '../domain/records/token-record.js'
import { invalid } from '../errors.js'
import {
  type RecordLocation,
  readAll,
  type Store,
  type StoreReader,
  type StoreWriter,
} from '../storage/store.js'
import type { Caller } from './caller/caller.js'

/**
 * The maximum number of sets that an application may add. The limit of public applications is lower, because anybody
 * can know their keys.
 */
const MOST_SETS = { public: 1_000, private: 10_000 }
const MAX_CACHED = 100_000
const PAGE_SIZE = 1000
/**
 * How many sets one unit of work examines. In a store of one process, the unit must be short, because other units wait
 * for this unit. In a shared store, few long units are better, because each unit that removes sets makes all processes
 * read their cached records again.
 */
const AT_ONCE = { own: 50, shared: 1_000 }
/**
 * A set is released when a token no longer has the set. Above this number of released sets, all sets are examined
 * instead.
 */
const MAX_RELEASED = 10_000
/** A store of one process examines released sets as soon as there are this many. Fewer sets wait for the next sweep. */
const DUE = 500
/**
 * A shared store marks an unused set, and removes the set after this time. A process that read the set before the mark
 * can still commit a token with the set. This commit ends before the removal, because PostgreSQL ends statements after
 * 30 s.
 */
const UNUSED_MS = 2 * 60_000

type Sets = readonly ContainerSetRecord[]

export class ContainerSets {
  readonly #store: Store
  readonly #cached = new Map<number, { counter: number; sets: Sets }>()
  #released = new Map<number, Set<string>>()
  #mustExamineAll = false
  #releasedSince = 0
  #reclaiming: Promise<void> | undefined

  constructor(store: Store) {
    this.#store = store
  }

  get #atOnce(): number {
    return this.#store.isShared ? AT_ONCE.shared : AT_ONCE.own
  }

  /** Newest first. Reads the store again only after a set has changed. */
  async all(reader: StoreReader, tenant: number): Promise<Sets> {
    const counter = reader.changeCounter(['containers'])
    const known = this.#cached.get(tenant)
    if (counter !== undefined && known?.counter === counter) return known.sets
    const sets: ContainerSetRecord[] = []
    for await (const page of pages(reader, tenant, PAGE_SIZE)) sets.push(...page)
    if (counter !== undefined) this.#cache(tenant, counter, sets)
    return sets
  }

  #cache(tenant: number, counter: number, sets: Sets): void {
    this.#cached.delete(tenant)
    let count = sets.length
    for (const each of this.#cached.values()) count += each.sets.length
    if (count > MAX_CACHED) this.#cached.clear()
    if (sets.length <= MAX_CACHED) this.#cached.set(tenant, { counter, sets })
  }

  /** Schedules the removal of sets that no token has. Requires: the unit of work has committed. */
  release(tenant: number, ids: readonly string[]): void {
    this.#remember(tenant, ids)
    this.#releasedSince += ids.length
    // If the removal fails, the next sweep examines the sets again.
    if (this.#releasedSince >= DUE && !this.#store.isShared) void this.reclaim().catch(() => undefined)
  }

  reclaim(isOver: () => boolean = () => false): Promise<void> {
    this.#reclaiming ??= this.#reclaim(isOver).finally(() => {
      this.#reclaiming = undefined
    })
    return this.#reclaiming
  }

  async #reclaim(isOver: () => boolean): Promise<void> {
    this.#releasedSince = 0
    if (this.#mustExamineAll) await this.examineAll(isOver)
    for (const [tenant, released] of [...this.#released]) {
      this.#released.delete(tenant)
      const ids = [...released]
      let first = 0
      try {
        for (; first < ids.length && !isOver(); first += this.#atOnce)
          this.#remember(tenant, await this.#examine(tenant, ids.slice(first, first + this.#atOnce)))
      } finally {
        this.#remember(tenant, ids.slice(first))
      }
    }
  }

  #remember(tenant: number, ids: readonly string[]): void {
    if (ids.length === 0) return
    const released = this.#released.get(tenant) ?? new Set()
    for (const id of ids) released.add(id)
    this.#released.set(tenant, released)
    if (released.size <= MAX_RELEASED) return
    this.#released.delete(tenant)
    this.#mustExamineAll = true
  }

  /** Removes all sets without tokens, including sets that a crash or an earlier version has left. */
  async examineAll(isOver: () => boolean = () => false): Promise<void> {
    const tenants = await readAll(this.#store, 'tenant', 0)
    let isDone = false
    this.#mustExamineAll = false
    try {
      for (const { number } of tenants)
        for await (const page of pages(this.#store, number, this.#atOnce)) {
          if (isOver()) return
          const ids = page.map(({ id }) => id)
          this.#remember(number, await this.#examine(number, ids))
        }
      isDone = true
    } finally {
      this.#mustExamineAll ||= !isDone
    }
  }

  async #examine(tenant: number, ids: readonly string[]): Promise<string[]> {
    const owner = await this.#store.read((reader) => reader.get('tenant', 0, String(tenant)))
    if (owner === undefined) return []
    // Most sets are in use. Therefore read transactions first find the few sets that may be removed. A shared store
    // answers concurrent reads with one statement.
    const isDue = async (reader: StoreReader, id: string) =>
      (await reader.get('containers', tenant, id))?.unused_since !== undefined ||
      !(await isUsed(reader, tenant, id))
    const due = await Promise.all(ids.map((id) => this.#store.read((reader) => isDue(reader, id))))
    const examined = ids.filter((_, at) => due[at])
    if (examined.length === 0) return []
    return this.#store.write((writer) => removeUnused(writer, tenant, examined, this.#store.isShared))
  }
}

/** Returns the ids of the sets that must be examined again later. */
async function removeUnused(
  writer: StoreWriter,
  tenant: number,
  ids: readonly string[],
  isShared: boolean,
): Promise<string[]> {
  if ((await writer.get('tenant', 0, String(tenant))) === undefined) return []
  // `isUsed` does not find expired tokens that are still stored. If the clock was wrong, these tokens can become valid
  // again and need their sets.
  const mayComeBack = writer.clock.purgeBefore < writer.now || (await writer.findExpired(1)).length > 0
  if (mayComeBack) return [...ids]
  const examined = await Promise.all(
    ids.map(async (id) => ({
      id,
      set: await writer.get('containers', tenant, id),
      isInUse: await isUsed(writer, tenant, id),
    })),
  )
  const left: string[] = []
  for (const { id, set, isInUse } of examined) {
    if (set === undefined) continue
    const { unused_since, ...unmarked } = set
    if (isInUse) {
      if (unused_since !== undefined) await writer.replace('containers', tenant, unmarked)
    } else if (!isShared || writer.now - (unused_since ?? writer.now) >= UNUSED_MS) {
      await writer.remove('containers', tenant, id)
    } else {
      left.push(id)
      if (unused_since === undefined)
        await writer.replace('containers', tenant, { ...set, unused_since: writer.now })
    }
  }
  return left
}

async function isUsed(reader: StoreReader, tenant: number, value: string): Promise<boolean> {
  const where = { field: 'containers', value }
  return (await reader.seek('token', tenant, { size: 1, where })).length > 0
}

/** Yields pages of sets, newest first. A `Store` reads each page in its own unit of work. */
async function* pages(
  source: StoreReader | Store,
  tenant: number,
  size: number,
): AsyncGenerator<ContainerSetRecord[]> {
  let last: RecordLocation<'containers'> | undefined
  do {
    const below = last?.seq
    const readPage = async (reader: StoreReader) => {
      const locations = await reader.seek('containers', tenant, { size, below })
      const records: ContainerSetRecord[] = []
      for (const location of locations) {
        const record = await reader.open(location)
        if (record !== undefined) records.push(record)
      }
      return { records, last: locations.length < size ? undefined : locations.at(-1) }
    }
    const page = 'seek' in source ? await readPage(source) : await source.read(readPage)
    last = page.last
    yield page.records
  } while (last !== undefined)
}

export class UnitContainerSets {
  readonly #sets: ContainerSets
  readonly #store: StoreWriter
  readonly #caller: Caller
  readonly #released: string[]
  readonly #known = new Set<string>()

  constructor(sets: ContainerSets, store: StoreWriter, caller: Caller, released: string[]) {
    this.#sets = sets
    this.#store = store
    this.#caller = caller
    this.#released = released
  }

  all(): Promise<Sets> {
    return this.#sets.all(this.#store, this.#caller.tenant)
  }

  /**
   * Returns a function that stores the set of a new token, or undefined if the set is already stored. Requires:
   * `prepare` is called before the first write of the token, and the function is called together with that write.
   * @throws CofferError `validation`
   */
  prepare(containers: readonly string[]): Awaitable<(() => Promise<void>) | undefined> {
    const id = containerSetId(containers)
    if (this.#known.has(id)) return undefined
    const { tenant } = this.#caller
    return andThen(this.#store.get('containers', tenant, id), (known) => {
      if (known !== undefined && known.unused_since === undefined) {
        this.#known.add(id)
        return undefined
      }
      return this.#prepareToStore(id, containers, known)
    })
  }

  async #prepareToStore(id: string, containers: readonly string[], known: ContainerSetRecord | undefined) {
    const { tenant, actor } = this.#caller
    const store = this.#store
    const own = actor.type === 'application' ? { created_by: actor.id } : {}
    if (known === undefined && own.created_by !== undefined) await this.#requireRoom(own.created_by)
    return async () => {
      this.#known.add(id)
      if (known === undefined)
        return store.insert(
          'containers',
          tenant,
          { id, containers: containerSet(containers), ...own },
          { fresh: true },
        )
      const { unused_since: _, ...used } = known
      return store.replace('containers', tenant, used)
    }
  }

  release(containers: readonly string[]): void {
    this.#released.push(containerSetId(containers))
  }

  async #requireRoom(application: string): Promise<void> {
    const isPrivate = this.#caller.applicationType === 'private'
    const most = isPrivate ? MOST_SETS.private : MOST_SETS.public
    const search = { where: { field: 'created_by', value: application }, page: most, size: 1 }
    const { records } = await this.#store.find('containers', this.#caller.tenant, search)
    if (records.length === 0) return
    const count = (limit: number) => limit.toLocaleString('en')
    const other = isPrivate
      ? 'another application, which has its own limit'
      : `a private application, which may add ${count(MOST_SETS.private)}`
    throw invalid(
      'containers',
      `would be a new set of containers, but this application has added ${count(most)}, which is its limit. ` +
        'Use containers that another token has, or delete tokens: a set that no token has is removed within minutes. ' +
        `Or create the token with ${other}`,
    )
  }
}
