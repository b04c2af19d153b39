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
  if (platform === 'linux') return { intervalMs: 20, read: readStatus }
  if (platform === 'win32') return { intervalMs: 10_000, read: () => undefined }
  return { intervalMs: 250, read: askPs }
}

function readStatus(pid: number): number | undefined {
  try {
    return findKiB(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')))
  } catch {
    // The process ended between two looks.
    return undefined
  }
}

function askPs(pid: number): number | undefined {
  try {
    const options = { encoding: 'latin1' as const, timeout: 1_000, stdio: 'pipe' as const }
    return findKiB(/(\d+)/.exec(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], options)))
  } catch {
    return undefined
  }
}

function findKiB(match: RegExpExecArray | null): number | undefined {
  return match === null ? undefined : Number(match[1]) / 1024
}
