/** The command line that starts a guest: what differs between Node's versions and between systems, and nothing else. */
import type { ReactorLimits } from './limits.js'

/** The Node that runs guests, which is the one that runs the host. */
export interface NodeProgram {
  /** Absolute. */
  path: string
  /** `20.19.0` */
  version: string
  /** As `process.platform`. */
  platform: string
}

export interface Launch {
  node: NodeProgram
  guestFile: string
  modulesDirectory?: string | undefined
  limits: ReactorLimits
}

/** All that a guest's environment says: without it the code would see the time zone of this machine. */
export const TIME_ZONE = 'UTC'

/**
 * No core dumps, and an end to the processor time of a child that spins on after its host was killed. Linux also kills
 * it at once, where its `setpriv` can say so. `env` takes away what a tool that watches our children put into their
 * environment, such as options for Node. `exec` keeps the process id.
 */
const SHELL_SCRIPT = [
  'ulimit -c 0',
  'ulimit -t "$1"',
  'shift',
  `set -- /usr/bin/env -i TZ=${TIME_ZONE} "$@"`,
  'setpriv --pdeathsig KILL true 2>/dev/null && exec setpriv --pdeathsig KILL "$@"',
  'exec "$@"',
].join('\n')

/**
 * Processor seconds that a child may use in its life. The pool retires it once it was busy for one time limit, so it is
 * never busy for more than two; collecting garbage doubles what that takes.
 */
export function cpuSeconds({ timeMs }: ReactorLimits): number {
  return 4 * Math.ceil(timeMs / 1000) + 10
}

export function describeLaunch({ node, guestFile, modulesDirectory, limits }: Launch): {
  command: string
  args: string[]
} {
  const guest = [...nodeFlags(node.version, limits), ...readable(guestFile, modulesDirectory), guestFile]
  if (modulesDirectory !== undefined) guest.push(modulesDirectory)
  if (node.platform === 'win32') return { command: node.path, args: guest }
  return {
    command: '/bin/sh',
    args: ['-c', SHELL_SCRIPT, 'sh', String(cpuSeconds(limits)), node.path, ...guest],
  }
}

function readable(guestFile: string, modulesDirectory: string | undefined): string[] {
  const files = [`--allow-fs-read=${guestFile}`]
  return modulesDirectory === undefined ? files : [...files, `--allow-fs-read=${modulesDirectory}/*`]
}

function nodeFlags(version: string, { memoryMiB }: ReactorLimits): string[] {
  return [
    isAtLeast(version, 22, 13) ? '--permission' : '--experimental-permission',
    ...(isAtLeast(version, 22, 14) ? ['--disable-sigusr1'] : []),
    `--max-old-space-size=${memoryMiB}`,
    '--no-addons',
    '--disable-proto=delete',
    '--zero-fill-buffers',
    '--no-warnings',
  ]
}

function isAtLeast(version: string, major: number, minor: number): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number)
  return ownMajor > major || (ownMajor === major && ownMinor >= minor)
}
