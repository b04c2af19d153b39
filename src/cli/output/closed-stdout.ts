import { fstatSync, readFileSync, readlinkSync } from 'node:fs'

const SHELLS = ['sh', 'bash', 'dash', 'ash', 'ksh', 'mksh', 'zsh', 'fish', 'busybox']
const O_RDWR = 2
const ACCESS_MODE = 3
/** The number of the device /dev/null on Linux. */
const NULL_DEVICE = 0x103

/**
 * Whether a shell has started this process with standard output closed (`>&-`). Before any code runs, Node replaces a
 * closed descriptor with /dev/null, open for reading and writing. Programs that discard the output on purpose
 * (`stdio: 'ignore'` in Node, `DEVNULL` in Python) open /dev/null in the same way. Therefore the output counts as
 * closed only if the parent is a shell whose own output is not /dev/null. Always false on systems other than Linux,
 * because the check reads `/proc`.
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

/** Returns false if the process has closed its output, because the link to the output does not exist then. */
function hasNullOutput(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/fd/1`) === '/dev/null'
  } catch {
    return false
  }
}
