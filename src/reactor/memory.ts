/** Resident memory of a process, as the operating system counts it: what no code inside can hide. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

export interface MemoryMeter {
  /** ms between two looks; a look costs microseconds on Linux and a process elsewhere. */
  readonly intervalMs: number
  /** MiB, or undefined when the process is gone. */
  read(pid: number): number | undefined
}

export function createMemoryMeter(platform: string): MemoryMeter {
  if (platform === 'linux') return { intervalMs: 20, read: createStatmReader() }
  if (platform === 'win32') return { intervalMs: 10_000, read: () => undefined }
  return { intervalMs: 250, read: askPs }
}

/** `statm` costs a third of `status`, but counts pages. */
function createStatmReader(): (pid: number) => number | undefined {
  const pageKiB = findPageKiB()
  return (pid) => {
    try {
      return (readPages(pid) * pageKiB) / 1024
    } catch {
      // The process ended between two looks.
      return undefined
    }
  }
}

/** How large a page is: a power of two, which the two files tell together of a process that is surely there. */
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

/** @throws Error where the system counts otherwise: without a meter nothing may run. */
function findKiB(match: RegExpExecArray | null): number {
  if (match === null) throw new Error('The memory of a process cannot be read')
  return Number(match[1])
}
