/** Identifies processes, because a new process may have the number of a dead holder of a lock. */
import type * as ChildProcess from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import type { ProcessIdentity } from './lock.js'

/** @param pid the caller's own */
export function readProcessIdentity(pid: number): ProcessIdentity {
  return { pid, startOf, boot: readBoot(), host: hostname() }
}

/** The boot and the PID namespace, so that containers of one machine are told apart. */
function readBoot(): string {
  const boot = readText('/proc/sys/kernel/random/boot_id')?.trim() ?? ''
  try {
    return `${boot}/${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return boot
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** proc(5): field 3 is the state, field 22 the start in ticks since boot. A zombie counts as dead. */
function startOf(pid: number): string | undefined {
  const stat = readText(`/proc/${pid}/stat`)
  if (stat === undefined) return readText('/proc/self/stat') === undefined ? startByPs(pid) : undefined
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
}

/** For systems without /proc: ps(1) of POSIX. */
function startByPs(pid: number): string | undefined {
  // Loaded only here: it costs every command 5 ms, and most systems have /proc.
  const { execFileSync } = createRequire(import.meta.url)('node:child_process') as typeof ChildProcess
  try {
    const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore']
    const line = execFileSync('ps', ['-o', 'state=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio,
    }).trim()
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '')
  } catch {
    return undefined
  }
}
