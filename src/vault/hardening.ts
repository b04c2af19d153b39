/** What the operating system does for a process with a vault: no core dump has its memory, and its guests are confined. */
import type { Confinement } from '../reactor/launch.js'

export interface Hardening {
  /** Whether the limit of its core dumps is 0. */
  isCoreLimited: boolean
  confinement: Confinement
}

/**
 * Limits the core dumps of this process, whose id is `pid` and whose programs are on `path`, and finds out how guests can
 * be confined; see `Reactors`. Starts one process for both, because each that is started holds this one up.
 */
export async function harden(
  host: { pid: number; path: string | undefined },
  modulesDirectory?: string,
): Promise<Hardening> {
  const { confineThisNode } = await import('../reactor/confinement.js')
  const { isCoreLimited = false, ...confinement } = await confineThisNode(modulesDirectory, host)
  return { isCoreLimited, confinement }
}

export const CORE_DANGER =
  'A crash of this server may write its memory, including keys, to a core dump. Before starting it, run: ulimit -c 0'
