/** A child process that runs the guest program: starting it, exchanging messages with it, killing it. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeFrame, encodePrefix, FrameReader } from '../ipc/frames.js'
import { describeLaunch, type Launch, TIME_ZONE } from './launch.js'
import { mostFrameBytes } from './limits.js'
import { type GuestMessage, type HostMessage, readGuestMessage } from './messages.js'

/** Signals that end an aborting process. The first process of a PID namespace is not subject to SIGABRT. */
const ABORTS: readonly unknown[] = ['SIGABRT', 'SIGSEGV', 'SIGTRAP', 'SIGILL']

/** Niceness with about a tenth of the processor time of normal processes under load. */
const LOW_PRIORITY = 10

/** Why a child ended. `garbled`: it sent an invalid message and was killed. */
export type ExitReason = 'garbled' | 'out of memory' | 'ended'

export interface GuestListener {
  message(message: GuestMessage): void
  /** Called once; no message follows. */
  end(ending: ExitReason): void
}

export interface Guest {
  /** The process that runs the code, not a wrapper that waits for it. Undefined until the guest is ready. */
  readonly pid: number | undefined
  /** The process that we started: the guest itself, or a wrapper that ends with it. */
  readonly wrapperPid: number | undefined
  /** The size of a message above which it is invalid. */
  mostBytes: number
  /** The size of a body that may follow its message; 0 if none may. */
  mostBodyBytes: number
  /** Receives the messages; without one they are dropped. */
  listener: GuestListener | undefined
  /** Resolves to true once the guest accepts work and is confined; to false if that failed or it ended before. */
  readonly ready: Promise<boolean>
  readonly ended: Promise<void>
  /** Resolves once the pipe accepted the whole message, or the guest has ended; never rejects. */
  send(message: HostMessage, body?: Uint8Array): Promise<void>
  /** Lowers the scheduling priority permanently. */
  lowerPriority(): void
  kill(): void
}

/** A parameter of the pool, so that tests can replace it. */
export type StartGuest = () => Guest

/** Starts a guest in an empty directory, removed once it is ready. Without `TZ` code would see this machine's time zone. */
export function startGuest(launch: Launch): Guest {
  const { confinement, limits } = launch
  const { command, args } = describeLaunch(launch)
  const directory = mkdtempSync(join(tmpdir(), 'coffer-reactor-'))
  const child: ChildProcess = spawn(command, args, {
    cwd: directory,
    env: { TZ: TIME_ZONE },
    stdio: ['pipe', 'pipe', 'ignore'],
    windowsHide: true,
  })
  let pid: number | undefined
  let ending: ExitReason | undefined
  let settleReady: (isReady: boolean) => void = () => undefined
  const guest: Guest = {
    get pid() {
      return pid
    },
    wrapperPid: child.pid,
    mostBytes: mostFrameBytes(limits),
    mostBodyBytes: 0,
    listener: undefined,
    ready: new Promise((resolve) => {
      settleReady = resolve
    }),
    ended: new Promise((resolve) => {
      child.once('error', () => end('ended', resolve))
      child.once('close', (code, signal) =>
        end(code === 134 || ABORTS.includes(signal) ? 'out of memory' : 'ended', resolve),
      )
    }),
    send: async (message, body) => {
      const { stdin } = child
      try {
        const frames = [
          encodeFrame(message),
          ...(body === undefined ? [] : [encodePrefix(body.length), body]),
        ]
        if (stdin)
          await Promise.all(
            frames.map((frame) => new Promise<void>((resolve) => stdin.write(frame, () => resolve()))),
          )
      } catch {
        // The message is longer than a string can be.
        guest.kill()
      }
    },
    lowerPriority: () => {
      try {
        if (pid !== undefined) setPriority(pid, LOW_PRIORITY)
      } catch {
        // The process ended, or a container forbids changing the priority of another user's process.
      }
    },
    kill: () => child.kill('SIGKILL'),
  }
  // The event `close` reports a child that died.
  child.stdin?.on('error', () => undefined)
  const reader = new FrameReader()
  /** A message whose body comes next. */
  let unfinished: GuestMessage | undefined
  child.stdout?.on('data', (chunk: Buffer) => {
    reader.add(chunk)
    take(() => reader.next(unfinished === undefined ? guest.mostBytes : guest.mostBodyBytes))
  })
  // An empty directory that cannot be removed, for example on a disk that became read-only, is harmless.
  guest.ready.then(() => rmSync(directory, { recursive: true, force: true })).catch(() => undefined)
  return guest

  function take(next: () => Buffer | undefined): void {
    for (let frame = next(); frame !== undefined; frame = next()) {
      if (ending !== undefined) return
      const message =
        unfinished === undefined ? readGuestMessage(frame.toString()) : withBody(unfinished, frame)
      unfinished = undefined
      if (message === undefined) {
        // Only code that escaped from the realm can send an invalid message.
        ending = 'garbled'
        guest.kill()
        return
      }
      if (message.kind === 'ready') void confine().then(settleReady)
      else if ('hasBody' in message && message.hasBody && message.body === undefined) unfinished = message
      else guest.listener?.message(message)
    }
  }

  /** Finds the process of the guest, and removes the rights that it needed only to start. */
  async function confine(): Promise<boolean> {
    if (pid !== undefined) return true
    const { wrapper, descriptorLimiter } = confinement
    pid = child.pid !== undefined && wrapper.includes('--fork') ? findChild(child.pid) : child.pid
    if (pid === undefined) return false
    return descriptorLimiter === undefined || (await seal(descriptorLimiter, pid))
  }

  function end(usual: ExitReason, resolve: () => void): void {
    settleReady(false)
    guest.listener?.end(ending ?? usual)
    guest.listener = undefined
    resolve()
  }
}

/** undefined for an empty body: {@link FrameReader} returns a body that is too large as empty. */
function withBody(message: GuestMessage, body: Buffer): GuestMessage | undefined {
  return message.kind === 'done' && body.length > 0 ? { ...message, body } : undefined
}

/** The only child of the process `pid`, as a pid of this host's namespace; undefined if it has ended. */
function findChild(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim()) || undefined
  } catch {
    return undefined
  }
}

function seal([command, ...args]: readonly string[], pid: number): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(command!, [...args, String(pid)], { env: {} }, (error) => resolve(error === null))
  })
}
