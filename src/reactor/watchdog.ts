/** Watches running children from a thread of its own, so that their limits hold however long the host's event loop is busy. */
import { Worker } from 'node:worker_threads'
import type { Guest } from './child.js'
import { createMemoryMeter } from './memory.js'

/** ms between two looks at the memory; a look takes microseconds on Linux and starts a process elsewhere. */
const LINUX_INTERVAL_MS = 20
const INTERVAL_MS = 250
/** Far more than a pool has children. */
const MOST_WATCHED = 128

interface WatchLimits {
  timeMs: number
  /** Resident memory of the child. */
  mostMiB: number
}

export interface Watch {
  /** Ends the watch. `killed`: the limit for which the child was killed. */
  end(): { killed: 'time' | 'memory' | undefined; peakMiB: number }
}

/** Kills a child that exceeds its limits. */
export type StartWatch = (guest: Pick<Guest, 'pid' | 'wrapperPid'>, limits: WatchLimits) => Watch

/** The fields of a watched child. `run`: its number, 0 if the place is free, one of `KILLED` once it was killed. */
const FIELD = { run: 0, pid: 1, wrapperPid: 2, timeMs: 3, mostKiB: 4, peakKiB: 5 } as const
const FIELDS = 6
const KILLED = { time: -1, memory: -2 } as const

interface Shared {
  /** The number of watches that were started, then the fields of each place. */
  places: Int32Array
  FIELD: typeof FIELD
  FIELDS: number
  KILLED: typeof KILLED
  platform: string
  intervalMs: number
}

export class Watchdog {
  readonly #places = new Int32Array(new SharedArrayBuffer(4 * (1 + FIELDS * MOST_WATCHED)))
  readonly #platform: string
  #thread: Worker | undefined
  #runs = 0

  constructor(platform: string) {
    this.#platform = platform
  }

  /** Starts the thread unless it runs. */
  start(): void {
    if (this.#thread !== undefined) return
    const platform = this.#platform
    const intervalMs = platform === 'linux' ? LINUX_INTERVAL_MS : INTERVAL_MS
    const shared: Shared = { places: this.#places, FIELD, FIELDS, KILLED, platform, intervalMs }
    const thread = new Worker(`(${watchInThread})(require, ${createMemoryMeter})`, {
      eval: true,
      env: {},
      execArgv: [],
      workerData: shared,
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    })
    this.#thread = thread
    // The next watch replaces a thread that ended; the new thread watches all children.
    const forget = () => {
      if (this.#thread === thread) this.#thread = undefined
    }
    thread.once('error', forget).once('exit', forget).unref()
  }

  /** Contract: the child is ready. */
  watch: StartWatch = ({ pid, wrapperPid }, { timeMs, mostMiB }) => {
    if (pid === undefined || wrapperPid === undefined) throw new Error('The child is not ready')
    this.start()
    const places = this.#places
    const at = this.#findFree()
    this.#runs = (this.#runs % 0x7fffffff) + 1
    const run = this.#runs
    places.set([0, pid, wrapperPid, Math.ceil(timeMs), mostMiB * 1024, 0], at)
    Atomics.store(places, at, run)
    Atomics.add(places, 0, 1)
    Atomics.notify(places, 0)
    return {
      end: () => {
        const found = Atomics.compareExchange(places, at, run, 0)
        const killed = found === KILLED.time ? 'time' : found === KILLED.memory ? 'memory' : undefined
        const peakMiB = places[at + FIELD.peakKiB]! / 1024
        Atomics.store(places, at, 0)
        return { killed, peakMiB }
      },
    }
  }

  #findFree(): number {
    for (let at = 1; at < this.#places.length; at += FIELDS)
      if (Atomics.load(this.#places, at) === 0) return at
    throw new Error('Too many children are watched')
  }

  async close(): Promise<void> {
    await this.#thread?.terminate()
  }
}

/** The program of the thread. It can use nothing that is defined outside of it. */
function watchInThread(load: NodeJS.Require, createMeter: typeof createMemoryMeter): void {
  const { readFileSync } = load('node:fs') as typeof import('node:fs')
  const { execFileSync } = load('node:child_process') as typeof import('node:child_process')
  const { kill } = load('node:process') as typeof import('node:process')
  const { workerData } = load('node:worker_threads') as typeof import('node:worker_threads')
  const { places, FIELD, FIELDS, KILLED, platform, intervalMs } = workerData as Shared
  const read = createMeter(platform, { readFileSync, execFileSync })
  const deadlines = new Map<number, { run: number; ms: number }>()

  for (;;) {
    const started = Atomics.load(places, 0)
    let waitMs = Infinity
    for (let at = 1; at < places.length; at += FIELDS) {
      const run = Atomics.load(places, at)
      if (run > 0) waitMs = Math.min(waitMs, look(at, run))
    }
    Atomics.wait(places, 0, started, waitMs)
  }

  /** @returns ms until the next look */
  function look(at: number, run: number): number {
    const known = deadlines.get(at)
    const deadline = known?.run === run ? known.ms : performance.now() + places[at + FIELD.timeMs]!
    deadlines.set(at, { run, ms: deadline })
    const leftMs = deadline - performance.now()
    const residentKiB = Math.round((read(places[at + FIELD.pid]!) ?? 0) * 1024)
    places[at + FIELD.peakKiB] = Math.max(places[at + FIELD.peakKiB]!, residentKiB)
    const limit = leftMs <= 0 ? 'time' : residentKiB > places[at + FIELD.mostKiB]! ? 'memory' : undefined
    if (limit === undefined) return Math.min(intervalMs, leftMs)
    // Unless the host has just ended the watch.
    if (Atomics.compareExchange(places, at, run, KILLED[limit]) === run) end(places[at + FIELD.wrapperPid]!)
    return intervalMs
  }

  function end(pid: number): void {
    try {
      kill(pid, 'SIGKILL')
    } catch {
      // The process has ended.
    }
  }
}
