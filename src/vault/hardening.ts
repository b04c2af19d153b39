/** Has the operating system keep the memory of a process with a vault out of core dumps, and confine its guests. */
import type { CoreOwner, Found } from '../reactor/confinement.js'

/**
 * Limits the core dumps of this process, the `host`, and finds out how guests can be confined. Starts one process for both,
 * because each that is started holds this one up.
 */
export async function harden(host: CoreOwner, modulesDirectory?: string): Promise<Found> {
  return (await import('../reactor/confinement.js')).confineThisNode(modulesDirectory, host)
}

export const CORE_DANGER =
  'A crash of this server may write its memory, including keys, to a core dump. Before starting it, run: ulimit -c 0'
