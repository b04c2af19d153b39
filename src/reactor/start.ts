import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { omitUndefined } from '../domain/omit-undefined.js'
import { settingOf } from '../domain/settings.js'
import type { ReactorOptions, ReactorRuntime } from '../framework/ports/reactors.js'
import { GuestProcess } from './child.js'
import {
  type Confinement,
  confineThisNode,
  describeSandbox,
  describeThisNode,
  findGuestFile,
} from './confinement.js'
import { createHostFetch } from './fetch.js'
import { HttpOutbound } from './outbound.js'
import { ReactorPool } from './pool.js'
import { DEFAULT_LIMITS, DEFAULT_SETTINGS, type PoolClock, type PoolSettings } from './settings.js'
import { createMemoryMeter, Watchdog } from './watchdog.js'

interface PoolOptions extends Pick<ReactorOptions, 'modulesDirectory' | 'allowNet' | 'ca'> {
  settings?: Partial<PoolSettings>
  confinement: Confinement
}

const clock: PoolClock = {
  now: () => performance.now(),
  after: (delayMs, work) => {
    const timer = setTimeout(work, delayMs)
    return () => clearTimeout(timer)
  },
}

/** Runs reactor code in child processes. @throws CofferError `usage` for an invalid entry of `allowNet`. */
export function createReactorPool(options: PoolOptions): ReactorPool {
  const { settings = {}, modulesDirectory, allowNet = [], ca, confinement } = options
  const node = describeThisNode()
  const guestFile = findGuestFile()
  const watchdog = new Watchdog(node.platform)
  const outbound = new HttpOutbound({ allowNet, ...omitUndefined({ ca }), waitMs: LONGEST_RUN_MS })
  return new ReactorPool(
    { ...DEFAULT_SETTINGS, ...settings },
    {
      clock,
      meter: createMemoryMeter(node.platform, { readFileSync, execFileSync }),
      watch: watchdog.watch,
      fetch: createHostFetch(outbound),
      startGuest: (limits) => {
        watchdog.start()
        return new GuestProcess({ node, guestFile, modulesDirectory, limits, confinement })
      },
      sandbox: describeSandbox(confinement),
      close: async () => {
        await outbound.close()
        await watchdog.close()
      },
    },
  )
}

/** A run ends before its requests are late: the longest time limit is 300 s. */
const LONGEST_RUN_MS = 301_000

type Values = Readonly<Record<string, unknown>>

export class Reactors {
  readonly #options: ReactorOptions
  readonly #confine: () => Promise<Confinement>
  #pool: Promise<ReactorPool> | undefined

  constructor(options: ReactorOptions, confine = () => confineThisNode(options.modulesDirectory)) {
    this.#options = options
    this.#confine = confine
  }

  /** @throws CofferError `usage` for an invalid entry of `allowNet`. */
  async fit(values: Values): Promise<ReactorRuntime> {
    const settings = readPoolSettings(values, this.#options)
    this.#pool ??= this.#confine().then((confinement) =>
      createReactorPool({ ...this.#options, settings, confinement }),
    )
    const pool = await this.#pool
    pool.configure(settings)
    return pool
  }

  async close(): Promise<void> {
    const pool = await this.#pool?.catch(() => undefined)
    await pool?.close()
  }
}

function readPoolSettings(values: Values, { prefix, spares, time }: ReactorOptions): PoolSettings {
  const timeMs = settingOf(values, 'reactors.time_limit_ms')
  return {
    ...DEFAULT_SETTINGS,
    isolation: settingOf(values, 'reactors.isolation'),
    // A run must be able to wait for another run of maximum duration.
    waitMs: Math.max(timeMs, DEFAULT_SETTINGS.waitMs),
    limits: {
      ...DEFAULT_LIMITS,
      timeMs,
      memoryMiB: settingOf(values, 'reactors.memory_limit_mib'),
      resultBytes: settingOf(values, 'reactors.result_limit_bytes'),
    },
    ...omitUndefined({ prefix, spares, time }),
  }
}
