/** The resident memory of a process as the operating system reports it. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

export interface MemoryMeter {
  /** ms between two measurements; one takes microseconds on Linux and starts a process elsewhere. */
  readonly intervalMs: number
  /** MiB, or undefined if the process has ended. */
  read(pid: number): number | undefined
}

export function createMemoryMeter(platform: string): MemoryMeter {
  if (platform === 'linux') return { intervalMs: 20, read: createStatmReader() }
  if (platform === 'win32') return { intervalMs: 10_000, read: () => undefined }
  return { intervalMs: 250, read: askPs }
}

/** Reading `statm` takes a third of the time of `status`, but it counts pages. */
function createStatmReader(): (pid: number) => number | undefined {
  const pageKiB = findPageKiB()
  return (pid) => {
    try {
      return (readPages(pid) * pageKiB) / 1024
    } catch {
      // The process has ended.
      return undefined
    }
  }
}

/** The page size: the power of two closest to the quotient of the two files for this process. */
function findPageKiB(): number {
  const status = readFileSync('/proc/self/status', 'latin1')
  const residentKiB = findKiB(/^VmRSS:\s+(\d+) kB$/m.exec(status))
  return 2 ** Math.round(Math.log2(residentKiB / readPages('self')))
}

function readPages(pid: number | 'self'): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1])
}

function askPs(pid: number): number | undefined {
  try {
    const options = { encoding: 'latin1' as const, timeout: 1_000, stdio: 'pipe' as const }
    const text = execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], options)
    return findKiB(/(\d+)/.exec(text)) / 1024
  } catch {
    return undefined
  }
}

/** @throws Error for an unknown format: without a memory limit no code may run. */
function findKiB(match: RegExpExecArray | null): number {
  if (match === null) throw new Error('The memory of a process cannot be read')
  return Number(match[1])
}
