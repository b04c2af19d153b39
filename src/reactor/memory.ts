/** The resident memory of a process as the operating system reports it. */

/** MiB, or undefined if the process has ended. */
export type MemoryMeter = (pid: number) => number | undefined

/** The functions of Node that {@link createMemoryMeter} uses. */
interface MeterTools {
  readFileSync: typeof import('node:fs').readFileSync
  execFileSync: typeof import('node:child_process').execFileSync
}

/**
 * Reading takes microseconds on Linux and starts a process elsewhere. The text of this function is also run in another
 * thread, so it can use nothing that is defined outside of it.
 * @throws Error for an unknown format: without a memory limit no code may run.
 */
export function createMemoryMeter(platform: string, { readFileSync, execFileSync }: MeterTools): MemoryMeter {
  if (platform === 'win32') return () => undefined
  const pageKiB = platform === 'linux' ? findPageKiB() : 0
  return (pid) => {
    try {
      return (platform === 'linux' ? readPages(pid) * pageKiB : askPs(pid)) / 1024
    } catch {
      return undefined
    }
  }

  /** The page size: the power of two closest to the quotient of the two files for this process. */
  function findPageKiB(): number {
    const status = readFileSync('/proc/self/status', 'latin1')
    return 2 ** Math.round(Math.log2(findNumber(/^VmRSS:\s+(\d+) kB$/m.exec(status)) / readPages('self')))
  }

  /** Reading `statm` takes a third of the time of `status`, but it counts pages. */
  function readPages(pid: number | 'self'): number {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1])
  }

  function askPs(pid: number): number {
    const options = { encoding: 'latin1', timeout: 1_000, stdio: 'pipe' } as const
    return findNumber(/(\d+)/.exec(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], options)))
  }

  function findNumber(match: RegExpExecArray | null): number {
    if (match === null) throw new Error('The memory of a process cannot be read')
    return Number(match[1])
  }
}
