/** Creates pools from the settings of a vault and the options of the process. */
import { settingOf } from '../domain/settings.js'
import type { ReactorOptions, ReactorRuntime } from '../framework/reactor-runtime.js'
import { confineThisNode } from './confinement.js'
import { type Confinement, describeThisNode } from './launch.js'
import { DEFAULT_LIMITS } from './limits.js'
import { createReactorPool } from './pool.js'
import { DEFAULT_SETTINGS, type PoolSettings } from './pool-settings.js'

type Values = Readonly<Record<string, unknown>>

/** The pool of a vault. When the settings change, a new pool replaces it, and the old one finishes its runs. */
export class Reactors {
  readonly #options: ReactorOptions
  readonly #pools = new Set<ReactorRuntime>()
  readonly #confine: () => Promise<Confinement>
  #current: { settings: string; pool: ReactorRuntime } | undefined

  constructor(options: ReactorOptions, confine: () => Promise<Confinement>) {
    this.#options = options
    this.#confine = confine
  }

  /** @throws CofferError `usage` for an invalid entry of `allowNet`. */
  async fit(values: Values): Promise<ReactorRuntime> {
    const confinement = await this.#confine()
    const settings = JSON.stringify(readPoolSettings(values, this.#options))
    if (this.#current?.settings === settings) return this.#current.pool
    const pool = createPool(values, this.#options, confinement)
    this.#current?.pool.retire()
    this.#current = { settings, pool }
    this.#pools.add(pool)
    return pool
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools].map((pool) => pool.close()))
  }
}

/** @throws CofferError `usage` for an invalid entry of `allowNet`. */
export async function startReactors(values: Values, options: ReactorOptions): Promise<ReactorRuntime> {
  return createPool(values, options, await confineThisNode(options.modulesDirectory))
}

function createPool(values: Values, options: ReactorOptions, confinement: Confinement): ReactorRuntime {
  const settings = readPoolSettings(values, options)
  return createReactorPool({ ...options, node: describeThisNode(), settings, confinement })
}

function readPoolSettings(values: Values, { prefix, spares, time }: ReactorOptions): Partial<PoolSettings> {
  const timeMs = settingOf(values, 'reactors.time_limit_ms')
  return {
    isolation: settingOf(values, 'reactors.isolation'),
    // A run must be able to wait for another run of maximum duration.
    waitMs: Math.max(timeMs, DEFAULT_SETTINGS.waitMs),
    limits: {
      ...DEFAULT_LIMITS,
      timeMs,
      memoryMiB: settingOf(values, 'reactors.memory_limit_mib'),
      resultBytes: settingOf(values, 'reactors.result_limit_bytes'),
    },
    ...(prefix === undefined ? {} : { prefix }),
    ...(spares === undefined ? {} : { spares }),
    ...(time === undefined ? {} : { time }),
  }
}
