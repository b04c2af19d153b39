/**
 * The layers of confinement around code that has escaped from its realm. If one layer fails, the other layers must
 * still hold.
 */
import { createSocket } from 'node:dgram'
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { GuestProcess } from '../../../src/reactor/child.js'
import {
  type Confinement,
  describeSandbox,
  findConfinement,
  listWrappers,
  type NodeProgram,
} from '../../../src/reactor/confinement.js'
import { DEFAULT_LIMITS, guestSizeOf } from '../../../src/reactor/settings.js'

const here = fileURLToPath(new URL('.', import.meta.url))
const node: NodeProgram = {
  path: process.execPath,
  version: process.versions.node,
  platform: process.platform,
  isRoot: process.getuid?.() === 0,
}

/** All users may read the folder, because the guest may run as the user `nobody`. */
const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
chmodSync(folder, 0o755)
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const guestFile = join(folder, 'escaped.mjs')
copyFileSync(join(here, 'escaped.mjs'), guestFile)
const found = await findConfinement(node, guestFile, listWrappers(node, false))
const sandbox = describeSandbox(found, node)
t.comment(JSON.stringify(sandbox))

/** Returns a program that runs Node without its permission model. */
function withoutPermissions(): NodeProgram {
  const path = join(folder, 'node-without-permissions')
  const keep = 'case $word in *permission | --allow-*) ;; *) set -- "$@" "$word" ;; esac'
  const script = `#!/bin/sh\nfor word; do shift; ${keep}; done\nexec ${node.path} "$@"\n`
  writeFileSync(path, script, { mode: 0o755 })
  return { ...node, path }
}

/** Opens targets on the host for escaped code to attack. The targets record which attempts reached them. */
async function openHost() {
  const visits: string[] = []
  const socketPath = join(folder, 'host.socket')
  const secretPath = join(folder, 'secret')
  writeFileSync(secretPath, 'secret', { mode: 0o644 })
  const listen = (place: string | number) =>
    new Promise<ReturnType<typeof createServer>>((resolve) => {
      const server = createServer((socket) => {
        visits.push(String(place))
        socket.destroy()
      })
      server.listen(place, () => resolve(server))
    })
  const servers = [await listen(0), await listen(socketPath), await listen(`\0${socketPath}`)]
  chmodSync(socketPath, 0o777)
  const udp = createSocket('udp4').on('message', () => visits.push('udp'))
  await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', resolve))
  const isSignalled = () => visits.push('signal')
  process.on('SIGWINCH', isSignalled)
  const given = {
    hostPid: process.pid,
    port: (servers[0]!.address() as { port: number }).port,
    udpPort: udp.address().port,
    socketPath,
    secretPath,
  }
  const close = () => {
    process.off('SIGWINCH', isSignalled)
    for (const server of servers) server.close()
    udp.close()
  }
  return { given, visits, close }
}

/** Returns what the escaped guest could do, and which attempts reached the host. */
async function breakOut(confinement: Confinement, program = node) {
  const { given, visits, close } = await openHost()
  const guest = new GuestProcess({
    node: program,
    guestFile,
    size: guestSizeOf(DEFAULT_LIMITS, false),
    confinement,
  })
  if (!(await guest.ready)) throw new Error('The guest did not start')
  const lines: string[] = []
  guest.listener = {
    message: (message) => {
      if (message.kind === 'log') lines.push(message.text)
    },
    end: () => undefined,
  }
  await guest.send({
    kind: 'run',
    args: given,
    configuration: {},
    prefix: 'svc',
    hasClient: false,
    resultBytes: 1024,
  })
  await guest.ended
  close()
  rmSync(join(folder, 'host.socket'), { force: true })
  const left = readdirSync(folder).filter((name) => name.startsWith('secret.'))
  for (const name of left) rmSync(join(folder, name))
  const done = lines.filter((line) => line.endsWith(': DONE')).map((line) => line.slice(0, -': DONE'.length))
  return { lines, done, visits, left }
}

const isWhole = sandbox.network_namespace && sandbox.process_namespace && sandbox.no_new_descriptors
const whole = { skip: !isWhole && 'this system does not support all walls' }
const sealed = { skip: !sandbox.no_new_descriptors && 'this system has no prlimit' }

/** Expects at least `attempts` attempts. Only the `allowed` attempts may succeed or reach the host. */
const holds = (
  [title, options]: [string, object],
  [attempts, confinement, program]: [number, Confinement, (NodeProgram | undefined)?],
  allowed: readonly string[] = [],
) =>
  t.test(title, options, async (t) => {
    const { lines, done, visits, left } = await breakOut(confinement, program)
    t.ok(lines.length >= attempts, `${lines.length} attempts`, { lines })
    const reached = [...done, ...visits].filter(
      (name) => !allowed.includes(name.replace(/^signal: .*/, 'signal')),
    )
    t.same({ reached, left }, { reached: [], left: [] }, 'nothing', { lines })
  })

const { descriptorLimiter } = await findConfinement(node, guestFile, [''])
const noNamespaces = { wrapper: [], ...(descriptorLimiter && { descriptorLimiter }) }
// The guest can reach only its own loopback network and the sockets in the file system. With Node 25, it can reach
// neither.
const INSIDE = [
  'network: listen',
  'socket: unix',
  'socket: unix, after closing others',
  join(folder, 'host.socket'),
]
const fallen = isWhole ? withoutPermissions() : undefined

holds(['code that can use all of Node reaches nothing outside its process', whole], [26, found])
holds(
  ['without Node’s permission model, code still reaches nothing outside its process', whole],
  [22, found, fallen],
)
const ofOthers = ['signal', 'process: another user']
holds(['without namespaces, code can open no socket and no file', sealed], [26, noNamespaces], ofOthers)
const network = 'even if code can open descriptors, it has no network and can signal no process'
holds([network, whole], [26, { wrapper: found.wrapper }], INSIDE)
