/** From the settings of a vault and the options of a run to a running pool. */
import { settingOf } from '../domain/settings.js'
import type { ReactorOptions, ReactorRuntime } from '../operations/reactor-runtime.js'
import { DEFAULT_LIMITS } from './limits.js'
import { createReactorPool, type PoolSettings } from './pool.js'
import { findThisNode } from './this-node.js'

/** @throws CofferError `usage` for an entry of `allowNet` that is none. */
export function startReactors(
  values: Readonly<Record<string, unknown>>,
  { allowNet = [], modulesDirectory, prefix, spares }: ReactorOptions,
): ReactorRuntime {
  const settings: Partial<PoolSettings> = {
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
  return createReactorPool({
    node: findThisNode(),
    allowNet,
    settings,
    ...(modulesDirectory === undefined ? {} : { modulesDirectory }),
  })
}
