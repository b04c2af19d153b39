/** Confinement of guests by the operating system. Finds the strongest wrapper command that works on this machine. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from '../errors.js'
import type { Sandbox } from '../framework/ports/reactors.js'
import type { GuestSize } from './settings.js'

/** If the probe takes longer, no confinement is used. */
const PROBE_MS = 5_000

const NOBODY = '--reuid 65534 --regid 65534 --clear-groups'
const GUARD = 'setpriv --pdeathsig KILL --no-new-privs'
/**
 * The namespaces that `unshare` creates. With a user namespace, an unprivileged user can create them too. A user
 * without a mapping is `nobody` in a user namespace.
 */
const ALONE = '--net --ipc --pid --fork --kill-child'
const BARE = '--inh-caps=-all --bounding-set=-all'

/**
 * Wrapper commands for root, the strongest first. The guest runs as the user `nobody`, who must be able to read the
 * file of the guest.
 */
const OF_ROOT = [
  `${GUARD} ${NOBODY} ${BARE} unshare --user --mount-proc ${ALONE}`,
  `${GUARD} ${NOBODY} ${BARE} unshare --user ${ALONE}`,
  `setpriv --pdeathsig KILL unshare --mount-proc ${ALONE} ${GUARD} ${NOBODY} ${BARE}`,
]
/** Wrapper commands for any user. Mounting `/proc` fails if parts of `/proc` are masked, as in containers. */
const OF_ANYBODY = [
  `${GUARD} unshare --user --mount-proc ${ALONE}`,
  `${GUARD} unshare --user ${ALONE}`,
  `${GUARD} unshare --user --net --ipc`,
]
const LAST = [`${GUARD} ${NOBODY} ${BARE}`, `${GUARD} ${BARE}`, GUARD, 'unshare --user --net --ipc', '']

/** `path`: the `PATH` in which `prlimit` is searched. */
export interface CoreOwner {
  pid: number
  path: string | undefined
}

/**
 * This shell script limits the core dumps of the process $3, and prints `limited` on success. A handler that takes
 * dumps is not bound by this limit, so the script also sets a filter that keeps memory out of the dumps. Then the
 * script prints the first wrapper under which Node and the guest file are accessible, and the paths of the tools.
 */
const PROBE = [
  'node=$1 guest=$2 pid=$3 path=$4; shift 4',
  'if [ -n "$pid" ]; then',
  '  { echo 0 >"/proc/$pid/coredump_filter"; } 2>/dev/null',
  '  own=$PATH; PATH=${path:-$own}',
  '  if prlimit --pid "$pid" --core=0 >/dev/null 2>&1 || [ "$(ulimit -c)" = 0 ]; then echo limited; fi',
  '  PATH=$own',
  'fi',
  'for wrapper; do',
  `  $wrapper /bin/sh -c '[ -x "$1" ] && [ -r "$2" ]' sh "$node" "$guest" 2>/dev/null && echo "held $wrapper" && break`,
  'done',
  'command -v prlimit',
  'command -v setpriv',
].join('\n')

/** Returns the wrappers to try, the strongest first. The last wrapper is empty: it confines nothing. */
export function listWrappers({ isRoot = false }: NodeProgram, hasBundles: boolean): string[] {
  // The user `nobody` cannot read the owner's bundles, so with bundles the guest keeps the user of the host.
  const forRoot = isRoot && !hasBundles
  const all = [...(forRoot ? OF_ROOT : []), ...OF_ANYBODY, ...LAST]
  // To measure the memory of a guest, the host must find its process. Without the list of children in `/proc`, the host
  // cannot find a guest that is a child of its wrapper.
  const listsChildren = existsSync('/proc/thread-self/children')
  return all.filter(
    (words) => (forRoot || !words.includes(NOBODY)) && (listsChildren || !words.includes('--fork')),
  )
}

/** Finds the strongest confinement on this machine. Call once, because the search starts several processes. */
export function confineThisNode(modulesDirectory?: string, core?: CoreOwner): Promise<Found> {
  const node = describeThisNode()
  return findConfinement(node, findGuestFile(), listWrappers(node, modulesDirectory !== undefined), core)
}

/** `isCoreLimited` is meaningful only if a `core` was given. */
export type Found = Confinement & { isCoreLimited?: boolean }

export async function findConfinement(
  { path, platform }: NodeProgram,
  guestFile: string,
  wrappers: readonly string[],
  core?: CoreOwner,
): Promise<Found> {
  const isLinux = platform === 'linux'
  if (!isLinux && core === undefined) return { wrapper: [] }
  const host = [`${core?.pid ?? ''}`, core?.path ?? '']
  const words = ['-c', PROBE, 'sh', path, guestFile, ...host, ...(isLinux ? wrappers : [])]
  const options = { env: { TZ: TIME_ZONE }, timeout: PROBE_MS, killSignal: 'SIGKILL' } as const
  // The exit code is ignored, because the script also fails if only the last tool is missing.
  const lines = await new Promise<string[]>((resolve) => {
    const probe = execFile('/bin/sh', words, options, (_, stdout) => resolve(stdout.split('\n')))
    probe.stdin?.end()
  })
  const isCoreLimited = lines.includes('limited')
  const find = (pattern: RegExp) => lines.find((line) => pattern.test(line))
  const held = find(/^held /)?.slice('held '.length) ?? ''
  const wrapper = held.split(' ').filter((word) => word !== '')
  const [prlimit, setpriv = ''] = [find(/\/prlimit$/), find(/\/setpriv$/)]
  if (prlimit === undefined || !isLinux) return { wrapper, isCoreLimited }
  // Containers can forbid root to set limits of another user's process. Therefore `prlimit` runs as the user of the
  // guest.
  const user = held.includes(NOBODY) ? [setpriv, ...NOBODY.split(' ')] : []
  return { wrapper, isCoreLimited, descriptorLimiter: [...user, prlimit, '--nofile=0', '--pid'] }
}

export function describeSandbox(
  { wrapper, descriptorLimiter }: Confinement,
  { version }: NodeProgram = describeThisNode(),
): Sandbox {
  return {
    node_permissions: true,
    node_network_permission: isAtLeast(version, 25, 0),
    network_namespace: wrapper.includes('--net'),
    process_namespace: wrapper.includes('--pid'),
    user_namespace: wrapper.includes('--user'),
    no_new_privileges: wrapper.includes('--no-new-privs'),
    no_new_descriptors: descriptorLimiter !== undefined,
    ends_with_host: wrapper.includes('--pdeathsig'),
  }
}

export interface NodeProgram {
  path: string
  version: string
  platform: string
  isRoot?: boolean
}

export interface Confinement {
  /** The first words of the command line. With `--fork`, the guest is a child of the process that the host starts. */
  wrapper: readonly string[]
  /**
   * A command that prevents a process from opening file descriptors. The caller appends the process id to this command.
   */
  descriptorLimiter?: readonly string[]
}

export interface Launch {
  node: NodeProgram
  guestFile: string
  modulesDirectory?: string | undefined
  size: GuestSize
  confinement: Confinement
}

export function describeThisNode(): NodeProgram {
  const { execPath, versions, platform } = process
  return { path: execPath, version: versions.node, platform, isRoot: process.getuid?.() === 0 }
}

/**
 * Searches beside the bundled command line, and two levels above this compiled module.
 * @throws CofferError `internal`
 */
export function findGuestFile(): string {
  const found = ['guest.mjs', '../../guest.mjs']
    .map((path) => fileURLToPath(new URL(path, import.meta.url)))
    .find((path) => existsSync(path))
  if (found === undefined)
    throw new CofferError('internal', 'The guest of reactors was not built; run the build.')
  return found
}

/** The only variable in a guest's environment. Without it, the code would see the time zone of this machine. */
export const TIME_ZONE = 'UTC'

/**
 * Disables core dumps, closes inherited descriptors, and limits the processor time in case the host is killed. `exec`
 * keeps the process id.
 */
const SHELL_SCRIPT = [
  'ulimit -c 0',
  'ulimit -t "$1"',
  'shift',
  `exec ${[3, 4, 5, 6, 7, 8, 9].map((descriptor) => `${descriptor}>&-`).join(' ')}`,
  'exec "$@"',
].join('\n')

export function describeLaunch({ node, guestFile, modulesDirectory, size, confinement }: Launch): {
  command: string
  args: string[]
} {
  const bundles = modulesDirectory === undefined ? [] : [modulesDirectory]
  const readables = [guestFile, ...bundles.map((directory) => `${directory}/*`)]
  const flags = [...nodeFlags(node.version, size), ...readables.map((path) => `--allow-fs-read=${path}`)]
  const guest = [...flags, guestFile, ...bundles]
  if (node.platform === 'win32') return { command: node.path, args: guest }
  // `env -i` removes variables that tools add to the environment of child processes, such as options for Node.
  const program = [...confinement.wrapper, '/usr/bin/env', '-i', `TZ=${TIME_ZONE}`, node.path, ...guest]
  // All runs of a child share this limit of processor time. `longestMs` is added, because the last run may start
  // shortly before `busyMs` is reached. The sum is doubled, because garbage collection can double the processor time.
  const cpuSeconds = 2 * Math.ceil((size.busyMs + size.longestMs) / 1000) + 10
  return { command: '/bin/sh', args: ['-c', SHELL_SCRIPT, 'sh', String(cpuSeconds), ...program] }
}

function nodeFlags(version: string, { memoryMiB }: GuestSize): string[] {
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
