/** From the settings of a vault and the options of a run to running pools. */
import { settingOf } from '../domain/settings.js'
import type { ReactorOptions, ReactorRuntime } from '../operations/reactor-runtime.js'
import { DEFAULT_LIMITS } from './limits.js'
import { createReactorPool } from './pool.js'
import type { PoolSettings } from './pool-settings.js'
import { findThisNode } from './this-node.js'

type Values = Readonly<Record<string, unknown>>

/** The pool of a vault, replaced when its settings change: what runs ends as it began. */
export class Reactors {
  readonly #options: ReactorOptions
  readonly #pools = new Set<ReactorRuntime>()
  #present: { settings: string; pool: ReactorRuntime } | undefined

  constructor(options: ReactorOptions) {
    this.#options = options
  }

  /** @throws CofferError `usage` for an entry of `allowNet` that is none. */
  fit(values: Values): ReactorRuntime {
    const settings = JSON.stringify(readPoolSettings(values, this.#options))
    if (this.#present?.settings === settings) return this.#present.pool
    const pool = startReactors(values, this.#options)
    this.#present?.pool.retire()
    this.#present = { settings, pool }
    this.#pools.add(pool)
    return pool
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools].map((pool) => pool.close()))
  }
}

/** @throws CofferError `usage` for an entry of `allowNet` that is none. */
export function startReactors(values: Values, options: ReactorOptions): ReactorRuntime {
  const { allowNet = [], modulesDirectory } = options
  return createReactorPool({
    node: findThisNode(),
    allowNet,
    settings: readPoolSettings(values, options),
    ...(modulesDirectory === undefined ? {} : { modulesDirectory }),
  })
}

function readPoolSettings(values: Values, { prefix, spares }: ReactorOptions): Partial<PoolSettings> {
  return {
    isolation: settingOf(values, 'reactors.isolation'),
    limits: {
      ...DEFAULT_LIMITS,
      timeMs: settingOf(values, 'reactors.time_limit_ms'),
      memoryMiB: settingOf(values, 'reactors.memory_limit_mib'),
      resultBytes: settingOf(values, 'reactors.result_limit_bytes'),
    },
    ...(prefix === undefined ? {} : { prefix }),
    ...(spares === undefined ? {} : { spares }),
  }
}
