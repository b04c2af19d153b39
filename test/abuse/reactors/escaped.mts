/**
 * A guest that has all the power of Node, like code that escaped from the realm. Like every guest, it waits for its
 * first message. Then it makes all attempts and reports which attempts succeeded. It imports no other file, because a
 * guest is not allowed to read other files.
 */
import fs from 'node:fs'

interface Given {
  /** The targets of the attempts. The listeners of the host record who reaches them. */
  hostPid: number
  port: number
  udpPort: number
  socketPath: string
  secretPath: string
}

type Attempt = (given: Given) => unknown

const PREFIX_BYTES = 4

function say(message: object): void {
  const text = Buffer.from(JSON.stringify(message))
  const prefix = Buffer.alloc(PREFIX_BYTES)
  prefix.writeUInt32BE(text.length)
  fs.writeSync(1, Buffer.concat([prefix, text]))
}

function hear(): { args: Given } {
  const buffer = Buffer.alloc(64 * 1024)
  for (let bytes = 0; ; ) {
    bytes += fs.readSync(0, buffer, bytes, buffer.length - bytes, null)
    const end = PREFIX_BYTES + buffer.readUInt32BE()
    if (bytes >= end) return JSON.parse(buffer.toString('utf8', PREFIX_BYTES, end))
  }
}

/** Resolves at `event`, and rejects if `emitter` fails. */
function settle(emitter: NodeJS.EventEmitter, event: string): Promise<void> {
  return new Promise((resolve, reject) => emitter.once(event, resolve).on('error', reject))
}

/** Closes inherited descriptors, so that new descriptors stay below the limit. */
function makeRoom(): void {
  for (let descriptor = 2; descriptor < 40; descriptor++)
    if (descriptor === 2 || descriptor > 16)
      try {
        fs.closeSync(descriptor)
      } catch {
        // The descriptor was not open.
      }
}

export const ATTEMPTS: Record<string, Attempt> = {
  'network: tcp': async ({ port }) => {
    const { connect } = await import('node:net')
    await settle(connect(port, '127.0.0.1'), 'connect')
  },
  'network: listen': async () => {
    const { createServer } = await import('node:net')
    await settle(createServer().listen(0, '127.0.0.1'), 'listening')
  },
  'network: udp': async ({ udpPort }) => {
    const { createSocket } = await import('node:dgram')
    const socket = createSocket('udp4')
    const failed = settle(socket, 'never')
    const sent = new Promise<void>((resolve, reject) =>
      socket.send('x', udpPort, '127.0.0.1', (error) => (error ? reject(error) : resolve())),
    )
    await Promise.race([failed, sent])
  },
  'network: fetch': ({ port }) => fetch(`http://127.0.0.1:${port}/`),
  'network: http': async ({ port }) => {
    const { get } = await import('node:http')
    await settle(get(`http://127.0.0.1:${port}/`), 'response')
  },
  'network: abstract socket': async ({ socketPath }) => {
    const { connect } = await import('node:net')
    await settle(connect(`\0${socketPath}`), 'connect')
  },
  'socket: unix': async ({ socketPath }) => {
    const { connect } = await import('node:net')
    await settle(connect(socketPath), 'connect')
  },
  'signal: the host': ({ hostPid }) => process.kill(hostPid, 'SIGWINCH'),
  'signal: the parent': () => {
    if (process.ppid === 0) throw new Error('there is none')
    process.kill(process.ppid, 0)
  },
  'signal: somebody': () => {
    const pids = Array.from({ length: 40_000 }, (_, at) => at + 1).filter((pid) => pid !== process.pid)
    const seen = pids.filter((pid) => {
      try {
        return process.kill(pid, 0)
      } catch (error) {
        // EPERM shows that the process exists.
        return (error as { code?: string }).code === 'EPERM'
      }
    })
    // Pids up to 64 may be threads of the guest itself.
    if (seen.filter((pid) => pid > 64).length === 0) throw new Error('there is nobody')
  },
  'file: read': ({ secretPath }) => fs.readFileSync(secretPath),
  'file: read later': ({ secretPath }) => fs.promises.readFile(secretPath),
  'file: write': ({ secretPath }) => fs.writeFileSync(`${secretPath}.new`, 'x'),
  'file: list': ({ socketPath }) => fs.readdirSync(socketPath.replace(/[^/]*$/, '')),
  'file: the host': ({ hostPid }) => fs.readFileSync(`/proc/${hostPid}/environ`),
  'file: its memory': ({ hostPid }) => fs.openSync(`/proc/${hostPid}/mem`, 'r'),
  'file: a database': async ({ secretPath }) => {
    const { DatabaseSync } = await import('node:sqlite' as string)
    new DatabaseSync(`${secretPath}.db`).exec('create table a (b)')
  },
  'file: a report': ({ secretPath }) => {
    const path = process.report.writeReport(`${secretPath}.report`)
    if (!path.startsWith('/')) throw new Error('not written')
  },
  'file: a heap snapshot': async ({ secretPath }) => {
    const { writeHeapSnapshot } = await import('node:v8')
    writeHeapSnapshot(`${secretPath}.heap`)
  },
  'process: child': async () => {
    const { spawnSync } = await import('node:child_process')
    const { error } = spawnSync('/bin/true')
    if (error !== undefined) throw error
  },
  'process: raw child': () => {
    const spawner = (
      process as unknown as { binding(name: string): { spawn(options: object): { error?: number } } }
    ).binding('spawn_sync')
    const { error } = spawner.spawn({ file: '/bin/true', args: ['true'], stdio: [] })
    if (error !== undefined && error < 0) throw new Error(`error ${error}`)
  },
  'process: cluster': async () => {
    const { default: cluster } = await import('node:cluster')
    await settle(cluster.fork(), 'online')
  },
  'process: worker': async () => {
    const { Worker } = await import('node:worker_threads')
    await settle(new Worker('0', { eval: true }), 'online')
  },
  'process: addon': () => process.dlopen({ exports: {} }, '/lib/x86_64-linux-gnu/libc.so.6'),
  'process: inspector': async () => {
    const { open, url } = await import('node:inspector')
    open(0, '127.0.0.1')
    if (url() === undefined) throw new Error('not opened')
  },
  'process: another user': () => process.setuid!(0),
  // This attempt is the last, because a process without its descriptors may end at any time.
  'socket: unix, after closing others': async ({ socketPath }) => {
    const { connect } = await import('node:net')
    makeRoom()
    await settle(connect(socketPath), 'connect')
  },
}

/** An attempt without an answer within this time counts as refused. For example, a lost packet is never answered. */
const ATTEMPT_MS = 300

async function tryAll(given: Given, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const late = new Promise((_, reject) => setTimeout(() => reject(new Error('no answer')), ATTEMPT_MS))
    const attempt = async () => ATTEMPTS[name]!(given)
    const text = await Promise.race([attempt(), late]).then(
      () => 'DONE',
      (error) => String(error?.cause?.code ?? error?.code ?? error),
    )
    say({ kind: 'log', level: 'log', text: `${name}: ${text}` })
  }
}

// An error outside of an attempt is ignored. The attempt then gets no answer and counts as refused.
process.on('uncaughtException', () => undefined)
process.on('unhandledRejection', () => undefined)
say({ kind: 'ready' })
const { args } = hear()
const names = Object.keys(ATTEMPTS)
await tryAll(args, names)
say({ kind: 'done', raw: JSON.stringify(names.length) })
process.exit(0)
