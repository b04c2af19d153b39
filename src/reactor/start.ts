/** Creates pools from the settings of a vault and the options of the process. */
import { settingOf } from '../domain/settings.js'
import type { ReactorOptions, ReactorRuntime } from '../framework/ports/reactors.js'
import { confineThisNode } from './confinement.js'
import { type Confinement, describeThisNode } from './launch.js'
import { DEFAULT_LIMITS } from './limits.js'
import { createReactorPool } from './pool.js'
import { DEFAULT_SETTINGS, type PoolSettings } from './pool-settings.js'

type Values = Readonly<Record<string, unknown>>

export type Reactors = ReturnType<typeof createReactors>

/** The pool of a vault. When the settings change, a new pool replaces it, and the old one finishes its runs. */
export function createReactors(
  options: ReactorOptions,
  confine: () => Promise<Confinement> = () => confineThisNode(options.modulesDirectory),
) {
  const pools = new Set<ReactorRuntime>()
  let current: { name: string; pool: ReactorRuntime } | undefined
  return {
    /** @throws CofferError `usage` for an invalid entry of `allowNet`. */
    async fit(values: Values): Promise<ReactorRuntime> {
      const confinement = await confine()
      const settings = readPoolSettings(values, options)
      const name = JSON.stringify(settings)
      if (current?.name === name) return current.pool
      const pool = createReactorPool({ ...options, node: describeThisNode(), settings, confinement })
      current?.pool.retire()
      current = { name, pool }
      pools.add(pool)
      return pool
    },

    async close(): Promise<void> {
      await Promise.all([...pools].map((pool) => pool.close()))
    },
  }
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
