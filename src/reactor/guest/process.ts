/** `process` and `performance` for reactor code. Both reveal nothing about the real process. */
import { performance } from 'node:perf_hooks'
import { nextTick } from 'node:process'
import { define } from './shield.js'

/** Read when the guest starts, before reactor code can change it. */
const now = performance.now.bind(performance)

const LEGACY = { node: '16.20.2', v8: '9.4.146.26-node.26', modules: '93' }
/**
 * The versions of Node that `process` reports for an image. For other images, `process` reports {@link LEGACY}. The
 * code always runs under the Node of the server.
 */
const VERSIONS: Readonly<Record<string, Readonly<Record<'node' | 'v8' | 'modules', string>>>> = {
  node22: { node: '22.22.0', v8: '12.4.254.21-node.33', modules: '127' },
  node24: { node: '24.13.0', v8: '13.6.233.17-node.37', modules: '137' },
}

/** Clocks are as coarse as in browsers, because finer clocks would let code measure other work on the machine. */
const STEPS_PER_MS = 10

type Callback = (...args: unknown[]) => unknown
type Print = (...values: unknown[]) => void

export interface ProcessContext {
  image: string
  console: Record<'error' | 'log' | 'warn', Print>
  /** The returned callback keeps the current values of `AsyncLocalStorage`. */
  inherit(callback: Callback): Callback
  isOver(): boolean
  /** The time that the code reads, in ms since 1970. */
  date(): number
}

/** The returned function returns ms since the start of the run. */
function createClock(): () => number {
  const start = now()
  return () => Math.floor((now() - start) * STEPS_PER_MS) / STEPS_PER_MS
}

export function createProcess({ image, console, inherit, isOver, date }: ProcessContext) {
  const clock = createClock()
  const timeOrigin = date()
  const later = (callback: Callback, ...args: unknown[]) => {
    if (typeof callback !== 'function') throw new TypeError('The callback must be a function')
    const work = inherit(callback)
    // The run may end before Node calls the callback.
    nextTick(() => void (isOver() || work(...args)))
  }
  const versions = { ...(VERSIONS[image] ?? LEGACY) }
  const process: Record<string, unknown> = {
    title: 'node',
    version: `v${versions.node}`,
    versions,
    platform: 'linux',
    arch: 'x64',
    release: { name: 'node' },
    argv: ['/usr/local/bin/node', '/reactor.js'],
    argv0: 'node',
    execArgv: [],
    execPath: '/usr/local/bin/node',
    env: {},
    pid: 1,
    ppid: 0,
    config: { variables: {} },
    features: {},
    stdin: undefined,
    stdout: createOutput(console.log, later),
    stderr: createOutput(console.error, later),
    cwd: () => '/',
    umask: () => 0o22,
    uptime: () => clock() / 1000,
    memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }),
    hrtime: createHrtime(clock),
    nextTick: later,
    emitWarning: (warning: unknown) => console.warn(warning instanceof Error ? warning : String(warning)),
    exit: refuse('exit'),
    abort: refuse('abort'),
    chdir: refuse('chdir'),
    kill: refuse('kill'),
    binding: refuse('binding'),
    dlopen: refuse('dlopen'),
    listeners: () => [],
    listenerCount: () => 0,
    emit: () => false,
  }
  // No event of the process reaches the code.
  for (const name of LISTENING) process[name] = () => process
  define(process, Symbol.toStringTag, 'process', false)
  const performance = {
    now: clock,
    timeOrigin,
    toJSON: () => ({ timeOrigin }),
    mark: () => undefined,
    measure: () => undefined,
    clearMarks: () => undefined,
    clearMeasures: () => undefined,
    getEntries: () => [],
    getEntriesByName: () => [],
    getEntriesByType: () => [],
  }
  return { process, performance }
}

const LISTENING = [
  'on',
  'once',
  'off',
  'addListener',
  'prependListener',
  'prependOnceListener',
  'removeListener',
  'removeAllListeners',
  'setMaxListeners',
]

function refuse(name: string): () => never {
  return () => {
    throw new Error(`process.${name} is not available to reactor code`)
  }
}

function createOutput(print: Print, later: (callback: Callback) => void) {
  const write = (text: unknown, ...more: unknown[]): boolean => {
    print(String(text).replace(/\n$/, ''))
    const done = more.at(-1)
    if (typeof done === 'function') later(done as Callback)
    return true
  }
  const output: Record<string, unknown> = { isTTY: false, fd: -1, columns: 80, writable: true, write }
  for (const name of ['on', 'once', 'off', 'end', 'removeListener']) output[name] = () => output
  return output
}

function createHrtime(clock: () => number) {
  const bigint = () => BigInt(Math.round(clock() * STEPS_PER_MS)) * BigInt(1e6 / STEPS_PER_MS)
  const hrtime = (since?: readonly [seconds: number, nanoseconds: number]): [number, number] => {
    const all = Number(bigint())
    const [seconds, nanoseconds] = [Math.floor(all / 1e9), all % 1e9]
    if (since === undefined) return [seconds, nanoseconds]
    const before = Number(since[0]) * 1e9 + Number(since[1])
    const passed = Math.max(0, all - before)
    return [Math.floor(passed / 1e9), passed % 1e9]
  }
  return Object.assign(hrtime, { bigint })
}
