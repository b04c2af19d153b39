import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { omitUndefined } from '../domain/omit-undefined.js'
import type { ReactorOptions } from '../framework/ports/reactors.js'
import { GuestProcess } from './child.js'
import { type Confinement, describeSandbox, describeThisNode, findGuestFile } from './confinement.js'
import { createHostFetch } from './fetch.js'
import { HttpOutbound } from './outbound.js'
import { ReactorPool } from './pool.js'
import { DEFAULT_SETTINGS, type PoolClock, type PoolSettings } from './settings.js'
import { createMemoryMeter, Watchdog } from './watchdog.js'

interface PoolOptions extends Pick<ReactorOptions, 'modulesDirectory' | 'allowNet' | 'ca'> {
  settings?: Partial<PoolSettings>
  confinement: Confinement
  /** This process listens on these ports. Reactor code cannot send requests to them. */
  ownPorts?: ReadonlySet<number>
}

const clock: PoolClock = {
  now: () => performance.now(),
  after: (delayMs, work) => {
    const timer = setTimeout(work, delayMs)
    return () => clearTimeout(timer)
  },
}

/** @throws CofferError `usage` for an invalid entry of `allowNet` */
export function createReactorPool(options: PoolOptions): ReactorPool {
  const { settings = {}, modulesDirectory, allowNet = [], ca, confinement, ownPorts } = options
  const node = describeThisNode()
  const guestFile = findGuestFile()
  const watchdog = new Watchdog(node.platform)
  const outbound = new HttpOutbound({ allowNet, ...omitUndefined({ ca, ownPorts }), waitMs: LONGEST_RUN_MS })
  return new ReactorPool(
    { ...DEFAULT_SETTINGS, ...settings },
    {
      clock,
      meter: createMemoryMeter(node.platform, { readFileSync, execFileSync }),
      watch: watchdog.watch,
      fetch: createHostFetch(outbound),
      startGuest: (size) => {
        watchdog.start()
        return new GuestProcess({ node, guestFile, modulesDirectory, size, confinement })
      },
      sandbox: describeSandbox(confinement),
      close: async () => {
        await outbound.close()
        await watchdog.close()
      },
    },
  )
}

/** The time limit of a request, in ms. A run takes at most 900 s, so a run ends before its requests time out. */
const LONGEST_RUN_MS = 901_000
