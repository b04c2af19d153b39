/** `serve --workers` starts several processes that share a port and a vault in PostgreSQL. */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { pause } from '../../../client/pause.js'
import { CofferError, usage } from '../../../errors.js'
import { listen } from '../../../http/server.js'
import { isStore } from '../../../vault/open.js'
import type { CommandContext } from '../../context.js'
import { printNotice } from '../../output/output.js'
import { findVaultDirectory } from '../../target/place.js'
import { STOPPING } from './announcement.js'
import type { ServeOptions } from './serve-options.js'

const RESTART_MS = 1000
/** A worker sends this message when it can receive messages. Earlier messages would be lost. */
const READY = 'ready'
const STOP = 'stop'

/** The secrets of a run. Workers receive the secrets in a message, so workers do not prompt. */
type Typed = CommandContext['typed']

/**
 * @throws CofferError `usage` for a vault in a directory, and for options with state that each process would keep
 * separately
 */
export function requireShared(context: CommandContext, { vault, rate, hasControls }: ServeOptions): void {
  if (vault !== 'found' || !isStore(findVaultDirectory(context)))
    throw usage(
      '--workers needs a vault in PostgreSQL (--store). Only one process can open a vault in a directory.',
    )
  const apart =
    rate !== undefined
      ? '--rate-limit'
      : hasControls
        ? 'The control plane (--test-controls, --control-stored)'
        : undefined
  if (apart !== undefined)
    throw usage(`${apart} and --workers cannot be combined: each worker would count only its own requests.`)
}

export function isWorker(): boolean {
  return cluster.isWorker
}

export async function joinWorkers(context: CommandContext) {
  const own = cluster.worker!
  const stopped = new AbortController()
  const given = new Promise<{ typed: Omit<Typed, 'told'>; port: number }>((resolve) =>
    own.on('message', (message) => (message === STOP ? stopped.abort() : resolve(message))),
  )
  own.send(READY)
  const { typed, port } = await given
  const signal = AbortSignal.any([context.signal, stopped.signal])
  return { port, context: { ...context, signal, typed: { ...typed, told: context.typed.told } } }
}

export function leaveWorkers(): void {
  cluster.worker!.disconnect()
}

/**
 * Starts workers, and replaces workers that end, until `signal` is aborted. Calls `announce` when the first worker
 * listens. If the port is 0, first chooses a free port, because all workers must listen on the same port.
 * @throws CofferError `unavailable` if the first worker does not start; the worker has printed the reason
 */
export async function runWorkers(
  { signal, typed, terminal }: Pick<CommandContext, 'signal' | 'typed' | 'terminal'>,
  { workers: count, port: wanted, addresses }: ServeOptions,
  announce: (port: number) => Promise<void>,
): Promise<void> {
  const { servers, port } = await listen(() => createServer(), addresses, wanted)
  for (const server of servers) server.close()
  const workers = new Set<Worker>()
  const { told: _, ...secrets } = typed
  const start = (): Worker => {
    const worker = cluster.fork()
    workers.add(worker)
    worker.once('message', () => {
      worker.send({ typed: secrets, port })
      if (signal.aborted) worker.send(STOP)
    })
    worker.once('exit', () => workers.delete(worker))
    return worker
  }
  const keep = (worker: Worker) =>
    worker.once('exit', async () => {
      if (signal.aborted) return
      void printNotice(terminal, 'A worker ended. Another one starts.')
      await pause(RESTART_MS, signal)
      if (!signal.aborted) keep(start())
    })
  const first = start()
  const ended = once(first, 'exit').then(() => false)
  if (!(await Promise.race([once(first, 'listening'), ended]))) {
    if (signal.aborted) return
    throw new CofferError('unavailable', 'The first worker did not start. Its error is above.')
  }
  keep(first)
  await announce(port)
  while (workers.size < count && !signal.aborted) keep(start())
  if (!signal.aborted) await once(signal, 'abort')
  void printNotice(terminal, STOPPING)
  const ends = [...workers].map((worker) => once(worker, 'exit'))
  for (const worker of workers) if (worker.isConnected()) worker.send(STOP)
  await Promise.all(ends)
}
