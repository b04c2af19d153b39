/** Watches running children from a separate thread, so that their limits hold even while the host's event loop is busy. */
import { Worker } from 'node:worker_threads'
import type { Guest } from './child.js'

/** Begins a watch. The returned function ends it. `killed`: the limit that the child exceeded, if it was killed. */
export type StartWatch = (
  guest: Pick<Guest, 'pid' | 'wrapperPid'>,
  limits: { timeMs: number; maxMiB: number },
) => () => { killed: 'time' | 'memory' | undefined; peakMiB: number }

/** A watched child. `shared` holds one of `STATE`, and the KiB of the child's peak memory. */
interface Watch {
  shared: Int32Array
  pid: number
  wrapperPid: number
  timeMs: number
  maxMiB: number
}

const STATE = { running: 0, ended: 1, time: 2, memory: 3 } as const

export class Watchdog {
  readonly #platform: string
  readonly #watches = new Set<Watch>()
  #thread: Worker | undefined

  constructor(platform: string) {
    this.#platform = platform
  }

  start(): Worker {
    if (this.#thread !== undefined) return this.#thread
    const thread = new Worker(`(${watchInThread})(require, ${createMemoryMeter})`, {
      eval: true,
      env: {},
      execArgv: [],
      workerData: { platform: this.#platform, STATE },
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    })
    // If the thread has ended, the next watch starts a new one, which watches all children.
    const forget = () => {
      if (this.#thread === thread) this.#thread = undefined
    }
    thread.once('error', forget).once('exit', forget).unref()
    for (const watch of this.#watches) thread.postMessage(watch)
    this.#thread = thread
    return thread
  }

  /** Contract: the child is ready. */
  watch: StartWatch = ({ pid, wrapperPid }, limits) => {
    if (pid === undefined || wrapperPid === undefined) throw new Error('The child is not ready')
    const shared = new Int32Array(new SharedArrayBuffer(8))
    const watch = { shared, pid, wrapperPid, ...limits }
    this.start().postMessage(watch)
    this.#watches.add(watch)
    return () => {
      this.#watches.delete(watch)
      const found = Atomics.exchange(shared, 0, STATE.ended)
      const killed = found === STATE.time ? 'time' : found === STATE.memory ? 'memory' : undefined
      return { killed, peakMiB: shared[1]! / 1024 }
    }
  }

  async close(): Promise<void> {
    await this.#thread?.terminate()
  }
}

/** The program of the thread. It cannot use anything that is defined outside of this function. */
function watchInThread(load: NodeJS.Require, createMeter: typeof createMemoryMeter): void {
  const { readFileSync } = load('node:fs') as typeof import('node:fs')
  const { execFileSync } = load('node:child_process') as typeof import('node:child_process')
  const { kill } = load('node:process') as typeof import('node:process')
  const { parentPort, workerData } = load('node:worker_threads') as typeof import('node:worker_threads')
  const { running, time, memory } = workerData.STATE as typeof STATE
  const read = createMeter(workerData.platform, { readFileSync, execFileSync })
  // Measuring the memory takes microseconds on Linux, and starts a process on other platforms.
  const intervalMs = workerData.platform === 'linux' ? 20 : 250

  parentPort!.on('message', ({ shared, pid, wrapperPid, timeMs, maxMiB }: Watch) => {
    const deadline = performance.now() + timeMs
    const look = () => {
      if (Atomics.load(shared, 0) !== running) return
      const residentMiB = read(pid) ?? 0
      shared[1] = Math.max(shared[1]!, Math.round(residentMiB * 1024))
      const leftMs = deadline - performance.now()
      if (leftMs > 0 && residentMiB <= maxMiB) return void setTimeout(look, Math.min(intervalMs, leftMs))
      // Does nothing if the host has just ended the watch.
      if (Atomics.compareExchange(shared, 0, running, leftMs > 0 ? memory : time) !== running) return
      try {
        kill(wrapperPid, 'SIGKILL')
      } catch {
        // The process has already ended.
      }
    }
    look()
  })
}

/** Returns MiB of resident memory, or undefined if the process has ended or has not started. */
export type MemoryMeter = (pid: number | undefined) => number | undefined

type MeterTools = Pick<typeof import('node:fs'), 'readFileSync'> &
  Pick<typeof import('node:child_process'), 'execFileSync'>

/** Runs in the thread too, so it uses nothing from outside. @throws TypeError if the memory cannot be measured */
export function createMemoryMeter(platform: string, { readFileSync, execFileSync }: MeterTools): MemoryMeter {
  const options = { encoding: 'latin1', timeout: 1_000, stdio: 'pipe' } as const
  const readMiB = (pid: number | 'self') => {
    const match =
      platform === 'linux'
        ? /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))
        : /(\d+)/.exec(execFileSync('ps', ['-o', 'rss=', '-p', `${pid}`], options))
    return Number(match![1]) / 1024
  }
  if (platform === 'linux') readMiB('self')
  return (pid) => {
    try {
      return platform === 'win32' || pid === undefined ? undefined : readMiB(pid)
    } catch {
      return undefined
    }
  }
}
