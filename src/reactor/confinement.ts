/** Confinement of guests by the operating system: probes for the strongest wrapper command that works here. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Sandbox } from '../framework/ports/reactors.js'
import {
  type Confinement,
  describeThisNode,
  findGuestFile,
  isAtLeast,
  type NodeProgram,
  TIME_ZONE,
} from './launch.js'

/** If the probe takes longer, in ms, no confinement is used. */
const PROBE_MS = 5_000

const NOBODY = '--reuid 65534 --regid 65534 --clear-groups'
const GUARD = 'setpriv --pdeathsig KILL --no-new-privs'
/** Namespaces that an unprivileged user can create; an unmapped user is nobody inside. */
const ALONE = '--net --ipc --pid --fork --kill-child'
const BARE = '--inh-caps=-all --bounding-set=-all'

/** Wrappers for root, the strongest first. They run the guest as the user `nobody`, who must be able to read its file. */
const OF_ROOT = [
  `${GUARD} ${NOBODY} ${BARE} unshare --user --mount-proc ${ALONE}`,
  `${GUARD} ${NOBODY} ${BARE} unshare --user ${ALONE}`,
  `setpriv --pdeathsig KILL unshare --mount-proc ${ALONE} ${GUARD} ${NOBODY} ${BARE}`,
]
/** Wrappers for any user. Mounting `/proc` fails where parts of `/proc` are masked, as in containers. */
const OF_ANYBODY = [
  `${GUARD} unshare --user --mount-proc ${ALONE}`,
  `${GUARD} unshare --user ${ALONE}`,
  `${GUARD} unshare --user --net --ipc`,
]
const LAST = [`${GUARD} ${NOBODY} ${BARE}`, `${GUARD} ${BARE}`, GUARD, 'unshare --user --net --ipc', '']

/** The process whose core dumps are limited. `path`: the `PATH` that has `prlimit`. */
export interface CoreOwner {
  pid: number
  path: string | undefined
}

/**
 * Limits the core dumps of the process $3, and prints `limited` if they are. Without `prlimit` only a limit that it
 * inherited counts. The filter keeps memory out of the dumps that a handler gets, to which no limit applies. Then prints
 * the first wrapper under which Node and the guest file are accessible, and the paths of the tools.
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

/** The wrappers to try, the strongest first; the last one is empty. */
export function listWrappers({ isRoot = false }: NodeProgram, hasBundles: boolean): string[] {
  // The user `nobody` cannot read the owner's bundles.
  const forRoot = isRoot && !hasBundles
  const all = [...(forRoot ? OF_ROOT : []), ...OF_ANYBODY, ...LAST]
  // If the kernel lists no children, the guest behind a wrapper is not found, and its memory not measured.
  const listsChildren = existsSync('/proc/thread-self/children')
  return all.filter(
    (words) => (forRoot || !words.includes(NOBODY)) && (listsChildren || !words.includes('--fork')),
  )
}

/** Finds out how guests can be confined on this machine. Starts some processes; call it once. */
export function confine(node: NodeProgram, modulesDirectory?: string, core?: CoreOwner): Promise<Found> {
  return findConfinement(node, findGuestFile(), listWrappers(node, modulesDirectory !== undefined), core)
}

export function confineThisNode(modulesDirectory?: string, core?: CoreOwner): Promise<Found> {
  return confine(describeThisNode(), modulesDirectory, core)
}

/** `isCoreLimited` has no meaning unless a `core` was given. */
export type Found = Confinement & { isCoreLimited?: boolean }

export async function findConfinement(
  node: NodeProgram,
  guestFile: string,
  wrappers: readonly string[],
  core?: CoreOwner,
): Promise<Found> {
  const isLinux = node.platform === 'linux'
  if (!isLinux && core === undefined) return { wrapper: [] }
  const host = [String(core?.pid ?? ''), core?.path ?? '']
  const words = ['-c', PROBE, 'sh', node.path, guestFile, ...host, ...(isLinux ? wrappers : [])]
  const options = { env: { TZ: TIME_ZONE }, timeout: PROBE_MS, killSignal: 'SIGKILL' } as const
  // The script fails if the last tool is missing, so only its output counts.
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
  // Containers can deny root the right to set limits of another user's process, so prlimit runs as the guest's user.
  const user = held.includes(NOBODY) ? [setpriv, ...NOBODY.split(' ')] : []
  return { wrapper, isCoreLimited, descriptorLimiter: [...user, prlimit, '--nofile=0', '--pid'] }
}

/** The active protections of guests. */
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
