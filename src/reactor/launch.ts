/** The command line that starts a guest, with the differences between versions of Node and between systems. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from '../errors.js'
import type { ReactorLimits } from './limits.js'

/** Guests run the Node of the host. */
export interface NodeProgram {
  /** Absolute. */
  path: string
  /** `20.19.0` */
  version: string
  /** `process.platform` */
  platform: string
  isRoot?: boolean
}

export interface Confinement {
  /** The first words of the command line. With `--fork` the guest is a child of the process that we start. */
  wrapper: readonly string[]
  /** A command, with an absolute path, that given a process id prevents that process from opening descriptors. */
  descriptorLimiter?: readonly string[]
}

export interface Launch {
  node: NodeProgram
  guestFile: string
  modulesDirectory?: string | undefined
  limits: ReactorLimits
  confinement: Confinement
}

export function describeThisNode(): NodeProgram {
  const { execPath, versions, platform } = process
  return { path: execPath, version: versions.node, platform, isRoot: process.getuid?.() === 0 }
}

/** Beside the bundled command line, or two levels above this module as compiled. @throws CofferError `internal` */
export function findGuestFile(): string {
  const found = ['guest.mjs', '../../guest.mjs']
    .map((path) => fileURLToPath(new URL(path, import.meta.url)))
    .find((path) => existsSync(path))
  if (found === undefined)
    throw new CofferError('internal', 'The guest of reactors was not built; run the build.')
  return found
}

/** The only variable in a guest's environment; without it the code would see the time zone of this machine. */
export const TIME_ZONE = 'UTC'

/**
 * Disables core dumps, limits the processor time for the case that the host is killed, and closes descriptors that the
 * host inherited. `env -i` removes variables that tools add to the environment of our children, such as options for
 * Node. `exec` keeps the process id.
 */
const SHELL_SCRIPT = [
  'ulimit -c 0',
  'ulimit -t "$1"',
  'shift',
  `exec ${[3, 4, 5, 6, 7, 8, 9].map((descriptor) => `${descriptor}>&-`).join(' ')}`,
  'exec "$@"',
].join('\n')

export function describeLaunch({ node, guestFile, modulesDirectory, limits, confinement }: Launch): {
  command: string
  args: string[]
} {
  const [bundles, readable] =
    modulesDirectory === undefined
      ? [[], []]
      : [[modulesDirectory], [`--allow-fs-read=${modulesDirectory}/*`]]
  const readables = [`--allow-fs-read=${guestFile}`, ...readable]
  const guest = [...nodeFlags(node.version, limits), ...readables, guestFile, ...bundles]
  if (node.platform === 'win32') return { command: node.path, args: guest }
  const program = [...confinement.wrapper, '/usr/bin/env', '-i', `TZ=${TIME_ZONE}`, node.path, ...guest]
  // For all runs together: the pool discards a child that was busy for one time limit, so a child is busy for at most
  // two, and garbage collection can double the processor time.
  const cpuSeconds = 4 * Math.ceil(limits.timeMs / 1000) + 10
  return { command: '/bin/sh', args: ['-c', SHELL_SCRIPT, 'sh', String(cpuSeconds), ...program] }
}

function nodeFlags(version: string, { memoryMiB }: ReactorLimits): string[] {
  return [
    isAtLeast(version, 22, 13) ? '--permission' : '--experimental-permission',
    ...(isAtLeast(version, 22, 14) ? ['--disable-sigusr1'] : []),
    // These modules can open files despite the permission model.
    ...(isAtLeast(version, 22, 5) ? ['--no-experimental-sqlite', '--no-experimental-webstorage'] : []),
    `--max-old-space-size=${memoryMiB}`,
    '--no-addons',
    '--disable-proto=delete',
    '--zero-fill-buffers',
    '--no-warnings',
  ]
}

export function isAtLeast(version: string, major: number, minor: number): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number)
  return ownMajor > major || (ownMajor === major && ownMinor >= minor)
}
