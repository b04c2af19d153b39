/** How this system can hold guests, found out by trying: the strongest way that works here, and what it is worth. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Sandbox } from '../framework/reactor-runtime.js'
import { type Confinement, isAtLeast, type NodeProgram, TIME_ZONE } from './launch.js'

/** A system that does not answer within this many ms is taken to give nothing. */
const PROBE_MS = 5_000

const NOBODY = '--reuid 65534 --regid 65534 --clear-groups'
const GUARD = 'setpriv --pdeathsig KILL --no-new-privs'
/** What needs no rights over the user's own: an unmapped user is nobody inside, whoever it is outside. */
const ALONE = '--net --ipc --pid --fork --kill-child'
const BARE = '--inh-caps=-all --bounding-set=-all'

/** The wrappers for the user root, the strongest first: not root outside either, as far as nobody may read the guest. */
const OF_ROOT = [
  `${GUARD} ${NOBODY} ${BARE} unshare --user --mount-proc ${ALONE}`,
  `${GUARD} ${NOBODY} ${BARE} unshare --user ${ALONE}`,
  `setpriv --pdeathsig KILL unshare --mount-proc ${ALONE} ${GUARD} ${NOBODY} ${BARE}`,
]
/** The wrappers for anybody. A `/proc` of one's own is refused where parts of `/proc` are covered, as in containers. */
const OF_ANYBODY = [
  `${GUARD} unshare --user --mount-proc ${ALONE}`,
  `${GUARD} unshare --user ${ALONE}`,
  `${GUARD} unshare --user --net --ipc`,
]
const LAST = [`${GUARD} ${NOBODY} ${BARE}`, `${GUARD} ${BARE}`, GUARD, 'unshare --user --net --ipc', '']

/** Prints the first of the wrappers under which the program and the guest can be reached, then where the tools are. */
const PROBE = [
  'node=$1 guest=$2; shift 2',
  'for wrapper; do',
  `  $wrapper /bin/sh -c '[ -x "$1" ] && [ -r "$2" ]' sh "$node" "$guest" 2>/dev/null && echo "held $wrapper" && break`,
  'done',
  'command -v prlimit',
  'command -v setpriv',
].join('\n')

/** Which wrappers there are to try here, the strongest first; the last is none. */
export function listWrappers({ isRoot = false }: NodeProgram, hasBundles: boolean): string[] {
  // Bundles are their owner's alone.
  const forRoot = isRoot && !hasBundles
  const all = [...(forRoot ? OF_ROOT : []), ...OF_ANYBODY, ...LAST]
  return all.filter(
    (words) => (forRoot || !words.includes(NOBODY)) && (!words.includes('--fork') || canFindChildren()),
  )
}

/** Whether the kernel tells the children of a process: without it the guest behind a wrapper could not be measured. */
function canFindChildren(): boolean {
  return existsSync('/proc/thread-self/children')
}

/** Takes some milliseconds, in which nothing else happens; call it once. */
export function findConfinement(
  node: NodeProgram,
  guestFile: string,
  wrappers: readonly string[],
): Confinement {
  if (node.platform !== 'linux') return { wrapper: [] }
  const { stdout } = spawnSync('/bin/sh', ['-c', PROBE, 'sh', node.path, guestFile, ...wrappers], {
    env: { TZ: TIME_ZONE },
    encoding: 'utf8',
    timeout: PROBE_MS,
    killSignal: 'SIGKILL',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const lines = (stdout ?? '').split('\n')
  const find = (pattern: RegExp) => lines.find((line) => pattern.test(line))
  const words = find(/^held /)?.slice('held '.length) ?? ''
  const wrapper = words.split(' ').filter((word) => word !== '')
  const [prlimit, setpriv = ''] = [find(/\/prlimit$/), find(/\/setpriv$/)]
  if (prlimit === undefined) return { wrapper }
  // A limit is set by the user whose process it is, unless one has rights that containers take away from root.
  const user = words.includes(NOBODY) ? [setpriv, ...NOBODY.split(' ')] : []
  return { wrapper, descriptorLimiter: [...user, prlimit, '--nofile=0', '--pid'] }
}

export function describeSandbox(
  { version }: NodeProgram,
  { wrapper, descriptorLimiter }: Confinement,
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
