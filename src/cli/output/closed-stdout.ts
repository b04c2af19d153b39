import { fstatSync, readFileSync, readlinkSync } from 'node:fs'

const SHELLS = ['sh', 'bash', 'dash', 'ash', 'ksh', 'mksh', 'zsh', 'fish', 'busybox']
const O_RDWR = 2
const ACCESS_MODE = 3
/** The number of the device /dev/null on Linux. */
const NULL_DEVICE = 0x103

/**
 * Whether a shell has started this process with its standard output closed (`>&-`). Node opens /dev/null in the place of a
 * closed descriptor, for reading and writing, before any code runs. Programs that discard the output on purpose
 * (`stdio: 'ignore'` in Node, `DEVNULL` in Python) look like that too. So the output counts as closed only if the parent is a
 * shell whose own output is something else. False where this cannot be told: on other systems than Linux.
 */
export function isStdoutClosed(parent: number | undefined): boolean {
  try {
    if (parent === undefined || fstatSync(1).rdev !== NULL_DEVICE) return false
    const isOpenForBoth = (readFlags('/proc/self') & ACCESS_MODE) === O_RDWR
    return isOpenForBoth && isShell(parent) && !hasNullOutput(parent)
  } catch {
    return false
  }
}

function readFlags(place: string): number {
  const [, flags = '0'] = /^flags:\s*(\d+)/m.exec(readFileSync(`${place}/fdinfo/1`, 'utf8')) ?? []
  return Number.parseInt(flags, 8)
}

function isShell(pid: number): boolean {
  return SHELLS.includes(readFileSync(`/proc/${pid}/comm`, 'utf8').trim())
}

/** A process that has closed its output has no link. */
function hasNullOutput(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/fd/1`) === '/dev/null'
  } catch {
    return false
  }
}
