/** One child process that runs guest code: started, spoken to in frames, killed. It knows nothing of invocations. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeFrame, FrameReader } from '../ipc/frames.js'
import { type Confinement, describeLaunch, type Launch, TIME_ZONE } from './launch.js'
import { mostFrameBytes } from './limits.js'
import { type GuestMessage, type HostMessage, readGuestMessage } from './messages.js'

/** Aborting ends a process by these; the first process of a namespace is spared SIGABRT, and meets the others. */
const ABORTS: readonly unknown[] = ['SIGABRT', 'SIGSEGV', 'SIGTRAP', 'SIGILL']

/** A tenth of the processor time of others, where there is not enough for all. */
const LOW_PRIORITY = 10

/** How a child ended: by itself, or by whom. */
export type ExitReason = 'garbled' | 'out of memory' | 'ended'

export interface GuestListener {
  message(message: GuestMessage): void
  /** The last that is heard. */
  end(ending: ExitReason): void
}

export interface Guest {
  /** The process that runs the code, once the guest is ready; never one that only waits for it. */
  readonly pid: number | undefined
  /** The one who is told from now on; undefined: nobody, and whatever is said is dropped. */
  listener: GuestListener | undefined
  /** Resolves once the guest takes work and is held as far as it is to be; false when that failed or it ended before. */
  readonly ready: Promise<boolean>
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>
  /** Resolves once the guest's pipe took all of it, or nobody is there to read it any more; it never rejects. */
  send(message: HostMessage): Promise<void>
  /** Lets processes that are not told so go first, for good. */
  lowerPriority(): void
  /** At once, and not to be caught. */
  kill(): void
}

/** Starts guests; the pool is given one, so that tests can give another. */
export type StartGuest = () => Guest

/**
 * Starts a guest in an empty directory, which is gone as soon as the guest stands in it, with no environment but the
 * time zone: without one the code would see that of this machine.
 */
export function startGuest(launch: Launch): Guest {
  const { command, args } = describeLaunch(launch)
  const directory = mkdtempSync(join(tmpdir(), 'coffer-reactor-'))
  const child = spawn(command, args, {
    cwd: directory,
    env: { TZ: TIME_ZONE },
    stdio: ['pipe', 'pipe', 'ignore'],
    windowsHide: true,
  })
  const guest = new GuestProcess(child, launch.confinement, mostFrameBytes(launch.limits))
  void guest.ready.then(() => rmSync(directory, { recursive: true, force: true }))
  return guest
}

class GuestProcess implements Guest {
  listener: GuestListener | undefined
  readonly ready: Promise<boolean>
  readonly ended: Promise<void>
  readonly #child: ChildProcess
  readonly #confinement: Confinement
  #pid: number | undefined
  #ending: ExitReason | undefined
  #settleReady: (isReady: boolean) => void = () => undefined

  constructor(child: ChildProcess, confinement: Confinement, mostBytes: number) {
    this.#child = child
    this.#confinement = confinement
    this.ready = new Promise((resolve) => {
      this.#settleReady = resolve
    })
    this.ended = new Promise((resolve) => {
      child.once('error', () => this.#end('ended', resolve))
      child.once('close', (code, signal) =>
        this.#end(code === 134 || ABORTS.includes(signal) ? 'out of memory' : 'ended', resolve),
      )
    })
    // A child that died is told of by its end.
    child.stdin?.on('error', () => undefined)
    const reader = new FrameReader(mostBytes)
    child.stdout?.on('data', (chunk: Buffer) => this.#take(reader.push(chunk)))
  }

  get pid(): number | undefined {
    return this.#pid
  }

  send(message: HostMessage): Promise<void> {
    const { stdin } = this.#child
    if (stdin === null) return Promise.resolve()
    return new Promise((resolve) => {
      stdin.write(encodeFrame(message), () => resolve())
    })
  }

  lowerPriority(): void {
    try {
      if (this.#pid !== undefined) setPriority(this.#pid, LOW_PRIORITY)
    } catch {
      // It ended, or containers took the right to say so of another user's process.
    }
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  #take(texts: string[] | undefined): void {
    for (const text of texts ?? ['']) {
      if (this.#ending !== undefined) return
      const message = readGuestMessage(text)
      if (message === undefined) {
        // Only something that broke out of the realm says what is no message.
        this.#ending = 'garbled'
        this.kill()
        return
      }
      if (message.kind === 'ready') void this.#confine().then(this.#settleReady)
      else this.listener?.message(message)
    }
  }

  /** Finds the process of the guest, and takes from it what it needed only to start. */
  async #confine(): Promise<boolean> {
    if (this.#pid !== undefined) return true
    const { wrapper, descriptorLimiter } = this.#confinement
    const { pid } = this.#child
    this.#pid = pid !== undefined && wrapper.includes('--fork') ? findChild(pid) : pid
    if (this.#pid === undefined) return false
    return descriptorLimiter === undefined || (await seal(descriptorLimiter, this.#pid))
  }

  #end(ending: ExitReason, resolve: () => void): void {
    this.#settleReady(false)
    this.listener?.end(this.#ending ?? ending)
    this.listener = undefined
    resolve()
  }
}

/** The only child of the process `pid`, by the numbers of this host; undefined when it is gone. */
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
