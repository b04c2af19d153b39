/** Watches running children from a thread of its own, so that their limits hold however long the host's event loop is busy. */
import { Worker } from 'node:worker_threads'
import type { Guest } from './child.js'

const MOST_WATCHED = 128

/** Begins a watch; the result ends it. `killed`: the limit for which the child was killed. */
export type StartWatch = (
  guest: Pick<Guest, 'pid' | 'wrapperPid'>,
  limits: { timeMs: number; mostMiB: number },
) => () => { killed: 'time' | 'memory' | undefined; peakMiB: number }

/** The fields of a watched child. `run`: its number, 0 if the place is free, one of `KILLED` once it was killed. */
const FIELD = { run: 0, pid: 1, wrapperPid: 2, timeMs: 3, mostKiB: 4, peakKiB: 5 } as const
const FIELDS = 6
const KILLED = { time: -1, memory: -2 } as const

type Shared = ReturnType<typeof createShared>
function createShared(platform: string) {
  // The number of watches that were started, then the fields of each place.
  const places = new Int32Array(new SharedArrayBuffer(4 * (1 + FIELDS * MOST_WATCHED)))
  // Between two looks at the memory. A look takes microseconds on Linux and starts a process elsewhere.
  const intervalMs = platform === 'linux' ? 20 : 250
  return { places, FIELD, FIELDS, KILLED, platform, intervalMs }
}

export class Watchdog {
  readonly #shared: Shared
  #thread: Worker | undefined
  #runs = 0

  constructor(platform: string) {
    this.#shared = createShared(platform)
  }

  start(): void {
    if (this.#thread !== undefined) return
    const thread = new Worker(`(${watchInThread})(require, ${createMemoryMeter})`, {
      eval: true,
      env: {},
      execArgv: [],
      workerData: this.#shared,
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
    const { places } = this.#shared
    let at = 1
    while (at < places.length && Atomics.load(places, at) !== 0) at += FIELDS
    if (at >= places.length) throw new Error('Too many children are watched')
    this.#runs = (this.#runs % 0x7fffffff) + 1
    const run = this.#runs
    places.set([0, pid, wrapperPid, Math.ceil(timeMs), mostMiB * 1024, 0], at)
    Atomics.store(places, at, run)
    Atomics.add(places, 0, 1)
    Atomics.notify(places, 0)
    return () => {
      const found = Atomics.compareExchange(places, at, run, 0)
      const killed = found === KILLED.time ? 'time' : found === KILLED.memory ? 'memory' : undefined
      const peakMiB = places[at + FIELD.peakKiB]! / 1024
      Atomics.store(places, at, 0)
      return { killed, peakMiB }
    }
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
    try {
      // Unless the host has just ended the watch.
      if (Atomics.compareExchange(places, at, run, KILLED[limit]) === run)
        kill(places[at + FIELD.wrapperPid]!, 'SIGKILL')
    } catch {
      // The process has ended.
    }
    return intervalMs
  }
}

/** MiB of resident memory as the operating system reports it, or undefined if the process has ended. */
export type MemoryMeter = (pid: number) => number | undefined

type MeterTools = Pick<typeof import('node:fs'), 'readFileSync'> &
  Pick<typeof import('node:child_process'), 'execFileSync'>

/**
 * Reading takes microseconds on Linux and starts a process elsewhere. The text of this function is also run in the thread,
 * so it can use nothing that is defined outside of it.
 * @throws Error for an unknown format: without a memory limit no code may run.
 */
export function createMemoryMeter(platform: string, { readFileSync, execFileSync }: MeterTools): MemoryMeter {
  if (platform === 'win32') return () => undefined
  const pageKiB = platform === 'linux' ? findPageKiB() : 0
  return (pid) => {
    try {
      return (platform === 'linux' ? readPages(pid) * pageKiB : readWithPs(pid)) / 1024
    } catch {
      return undefined
    }
  }

  /** The page size: the power of two closest to the quotient of the two files for this process. */
  function findPageKiB(): number {
    const status = readFileSync('/proc/self/status', 'latin1')
    return 2 ** Math.round(Math.log2(findNumber(/^VmRSS:\s+(\d+) kB$/m.exec(status)) / readPages('self')))
  }

  /** Reading `statm` takes a third of the time of `status`, but it counts pages. */
  function readPages(pid: number | 'self'): number {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1])
  }

  function readWithPs(pid: number): number {
    const options = { encoding: 'latin1', timeout: 1_000, stdio: 'pipe' } as const
    return findNumber(/(\d+)/.exec(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], options)))
  }

  function findNumber(match: RegExpExecArray | null): number {
    if (match === null) throw new Error('The memory of a process cannot be read')
    return Number(match[1])
  }
}
