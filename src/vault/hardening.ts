/** Keeps the memory of a process with a vault out of core dumps, and finds out how its guests can be confined. */
import type { CoreOwner, Found } from '../reactor/confinement.js'

/** Uses one child process for both, because starting a child blocks this process, the `host`. */
export async function harden(host: CoreOwner, modulesDirectory?: string): Promise<Found> {
  return (await import('../reactor/confinement.js')).confineThisNode(modulesDirectory, host)
}

export const CORE_DANGER =
  'A crash of this server may write its memory, including keys, to a core dump. Before starting it, run: ulimit -c 0'
