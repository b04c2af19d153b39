/** Watches running children from a separate thread, so that their limits hold while the host's event loop is busy. */
import { Worker } from 'node:worker_threads'
import type { Guest } from './child.js'

/** The returned function ends the watch. `killed`: the exceeded limit, if the child was killed. */
export type StartWatch = (
  guest: Pick<Guest, 'pid' | 'wrapperPid'>,
  limits: { timeMs: number; maxMiB: number },
) => () => { killed: 'time' | 'memory' | undefined; peakMiB: number }

/**
 * The host and the thread share a table of watched children, with one row of numbers for each watch. Therefore the host
 * sends no message, and the thread need not wake up for a run that ends in a few milliseconds.
 */
const ROWS = 64
/** Columns are 32-bit integers. `state` is a number of `STATE`, plus 4 for each earlier watch of the row. */
const COLUMN = { state: 0, pid: 1, wrapperPid: 2, timeMs: 3, maxKiB: 4, peakKiB: 5 } as const
const COLUMNS = 6
const STATE = { free: 0, running: 1, time: 2, memory: 3 } as const
/**
 * The words before the rows, as 32-bit integers. `signal` changes with each watch. `still` never changes: the thread
 * sleeps for a time by waiting for a change of `still`.
 */
const WORD = { signal: 0, asleep: 1, still: 2 } as const
const WORDS = 4

/** The thread gets these numbers as data. See `watchInThread`. */
const LAYOUT = { ROWS, COLUMN, COLUMNS, STATE, WORD, WORDS }

export class Watchdog {
  readonly #platform: string
  readonly #words = new Int32Array(new SharedArrayBuffer(4 * (WORDS + ROWS * COLUMNS)))
  readonly #freeRows = Array.from({ length: ROWS }, (_, row) => row)
  #thread: Worker | undefined

  constructor(platform: string) {
    this.#platform = platform
  }

  start(): void {
    if (this.#thread !== undefined) return
    const thread = new Worker(`(${watchInThread})(require, ${createMemoryMeter})`, {
      eval: true,
      env: {},
      execArgv: [],
      workerData: { platform: this.#platform, words: this.#words, layout: LAYOUT },
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    })
    // If the thread has ended, the next watch starts a new thread, which continues all watches in the table.
    const forget = () => {
      if (this.#thread === thread) this.#thread = undefined
    }
    thread.once('error', forget).once('exit', forget).unref()
    this.#thread = thread
  }

  /** @throws Error if the child is not ready, or if more children are watched than the table has rows */
  watch: StartWatch = ({ pid, wrapperPid }, { timeMs, maxMiB }) => {
    if (pid === undefined || wrapperPid === undefined) throw new Error('The child is not ready')
    const row = this.#freeRows.pop()
    if (row === undefined) throw new Error(`More than ${ROWS} children are watched`)
    const words = this.#words
    const first = WORDS + row * COLUMNS
    const running = words[first]! + STATE.running
    words[first + COLUMN.pid] = pid
    words[first + COLUMN.wrapperPid] = wrapperPid
    words[first + COLUMN.timeMs] = timeMs
    words[first + COLUMN.maxKiB] = Math.min(1024 * maxMiB, 2 ** 31 - 1)
    words[first + COLUMN.peakKiB] = 0
    Atomics.store(words, first + COLUMN.state, running)
    this.start()
    Atomics.add(words, WORD.signal, 1)
    if (Atomics.load(words, WORD.asleep) === 1) Atomics.notify(words, WORD.signal)
    return () => {
      const next = (running & ~3) + 4
      const found = Atomics.exchange(words, first + COLUMN.state, next) & 3
      const killed = found === STATE.time ? 'time' : found === STATE.memory ? 'memory' : undefined
      const peakMiB = words[first + COLUMN.peakKiB]! / 1024
      this.#freeRows.push(row)
      return { killed, peakMiB }
    }
  }

  async close(): Promise<void> {
    await this.#thread?.terminate()
  }
}

/** The program of the thread. It can use nothing from outside of this function. */
function watchInThread(load: NodeJS.Require, createMeter: typeof createMemoryMeter): void {
  const { readFileSync } = load('node:fs') as typeof import('node:fs')
  const { execFileSync } = load('node:child_process') as typeof import('node:child_process')
  const { kill } = load('node:process') as typeof import('node:process')
  const { workerData } = load('node:worker_threads') as typeof import('node:worker_threads')
  const words = workerData.words as Int32Array
  const { ROWS, COLUMN, COLUMNS, STATE, WORD, WORDS } = workerData.layout as typeof LAYOUT
  const read = createMeter(workerData.platform, { readFileSync, execFileSync })
  const TICK_MS = 20
  // Measuring the memory takes microseconds on Linux, and starts a process on other platforms.
  const memoryEveryMs = workerData.platform === 'linux' ? 0 : 250
  const measuredAt = new Float64Array(ROWS)
  /** The state and the deadline of each row when `look` last found a running child there. */
  const seen = new Int32Array(ROWS)
  const deadlines = new Float64Array(ROWS)

  for (;;) {
    const signal = Atomics.load(words, WORD.signal)
    const waitMs = lookAtAll()
    if (waitMs !== undefined) Atomics.wait(words, WORD.still, 0, waitMs)
    else {
      // No child is watched, so the thread sleeps until a watch begins. If a watch has begun since `signal` was loaded,
      // the thread wakes up at once.
      Atomics.store(words, WORD.asleep, 1)
      Atomics.wait(words, WORD.signal, signal)
      Atomics.store(words, WORD.asleep, 0)
    }
  }

  /** Returns ms until the next look, or undefined if no child is watched. */
  function lookAtAll(): number | undefined {
    let waitMs: number | undefined
    for (let row = 0; row < ROWS; row++) {
      const leftMs = look(row)
      if (leftMs !== undefined) waitMs = Math.min(waitMs ?? TICK_MS, leftMs)
    }
    return waitMs
  }

  /**
   * If the child of the row exceeds a limit, kills the child. Returns ms until the deadline of the child, or undefined
   * if the row has no running child.
   */
  function look(row: number): number | undefined {
    const first = WORDS + row * COLUMNS
    const state = Atomics.load(words, first + COLUMN.state)
    if ((state & 3) !== STATE.running) return undefined
    const now = performance.now()
    // The time of a watch begins when this thread first looks at the row, at most one tick late.
    if (seen[row] !== state) deadlines[row] = now + words[first + COLUMN.timeMs]!
    seen[row] = state
    const leftMs = deadlines[row]! - now
    let residentKiB = 0
    if (now - measuredAt[row]! >= memoryEveryMs) {
      measuredAt[row] = now
      residentKiB = Math.round((read(words[first + COLUMN.pid]!) ?? 0) * 1024)
      // The row can get another child during the measurement.
      if (Atomics.load(words, first + COLUMN.state) !== state) return undefined
      words[first + COLUMN.peakKiB] = Math.max(words[first + COLUMN.peakKiB]!, residentKiB)
    }
    if (leftMs > 0 && residentKiB <= words[first + COLUMN.maxKiB]!) return leftMs
    const exceeded = (state & ~3) + (leftMs > 0 ? STATE.memory : STATE.time)
    const wrapperPid = words[first + COLUMN.wrapperPid]!
    // Fails if the host has just ended the watch, even if a new watch has begun in this row.
    if (Atomics.compareExchange(words, first + COLUMN.state, state, exceeded) !== state) return undefined
    try {
      kill(wrapperPid, 'SIGKILL')
    } catch {
      // The process has already ended.
    }
    return undefined
  }
}

/** Returns MiB of resident memory, or undefined if the process has ended or has not started. */
export type MemoryMeter = (pid: number | undefined) => number | undefined

type MeterTools = Pick<typeof import('node:fs'), 'readFileSync'> &
  Pick<typeof import('node:child_process'), 'execFileSync'>

/**
 * Also runs in the thread, so it uses nothing from outside of this function.
 * @throws Error on Linux if the memory cannot be measured
 */
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
