import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeFrame, FrameReader } from '../ipc/frames.js'
import { type Confinement, describeLaunch, type Launch, TIME_ZONE } from './confinement.js'
import { type GuestMessage, type HostMessage, type MessageLimits, readGuestMessage } from './messages.js'

/**
 * The signals with which an aborting process can end. The first process of a PID namespace cannot end by SIGABRT, and
 * ends by another signal.
 */
const ABORTS: readonly unknown[] = ['SIGABRT', 'SIGSEGV', 'SIGTRAP', 'SIGILL']

/** Under load, a process with this niceness gets about a tenth of the processor time of a normal process. */
const LOW_PRIORITY = 10

/** `garbled`: the guest sent an invalid message and was killed. */
export type ExitReason = 'garbled' | 'out of memory' | 'ended'

export interface GuestListener {
  message(message: GuestMessage): void
  /** Called once, after the last message. */
  end(ending: ExitReason): void
}

export type Guest = Pick<GuestProcess, keyof GuestProcess>

/** The process of a guest starts in an empty directory, which is removed when the guest is ready. */
export class GuestProcess {
  /** The id of the process that runs the code, not of its wrapper. Undefined until the guest is ready. */
  pid: number | undefined
  messageLimits: MessageLimits = { maxBytes: 64 * 1024, maxBodyBytes: 0 }
  listener: GuestListener | undefined
  /**
   * Resolves to true when the guest is confined and accepts work, or to false if the guest fails or ends before that.
   */
  readonly ready: Promise<boolean>
  readonly ended: Promise<void>
  readonly #child: ChildProcess
  readonly #confinement: Confinement
  readonly #reader = new FrameReader()
  #ending: ExitReason | undefined
  #settleReady: (isReady: boolean) => void = () => undefined

  constructor(launch: Launch) {
    const { command, args } = describeLaunch(launch)
    const directory = mkdtempSync(join(tmpdir(), 'coffer-reactor-'))
    const child = spawn(command, args, {
      cwd: directory,
      env: { TZ: TIME_ZONE },
      stdio: ['pipe', 'pipe', 'ignore'],
      windowsHide: true,
    })
    this.#child = child
    this.#confinement = launch.confinement
    this.ready = new Promise((resolve) => {
      this.#settleReady = resolve
    })
    this.ended = new Promise((resolve) => {
      const end = (usual: ExitReason) => {
        this.#settleReady(false)
        this.listener?.end(this.#ending ?? usual)
        this.listener = undefined
        resolve()
      }
      child.once('error', () => end('ended'))
      child.once('close', (code, signal) =>
        end(code === 134 || ABORTS.includes(signal) ? 'out of memory' : 'ended'),
      )
    })
    // If writing fails because the child has ended, the event `close` reports the end.
    child.stdin.on('error', () => undefined)
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    // If removing fails, for example on a disk that became read-only, the remaining empty directory is harmless.
    this.ready.then(() => rmSync(directory, { recursive: true, force: true })).catch(() => undefined)
  }

  /** The process id of the guest itself, or of a wrapper that ends with the guest. */
  get wrapperPid(): number | undefined {
    return this.#child.pid
  }

  /** Resolves when the pipe has accepted the whole message or the guest has ended. Never rejects. */
  send(message: HostMessage, body?: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      try {
        this.#child.stdin!.write(encodeFrame(message, body), () => resolve())
      } catch {
        // `JSON.stringify` fails if the text is longer than a string can be.
        this.kill()
        resolve()
      }
    })
  }

  lowerPriority(): void {
    try {
      if (this.pid !== undefined) setPriority(this.pid, LOW_PRIORITY)
    } catch {
      // The process has ended, or a container forbids changing the priority of another user's process.
    }
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  #read(chunk: Buffer): void {
    this.#reader.add(chunk)
    for (;;) {
      const { maxBytes, maxBodyBytes } = this.messageLimits
      const frame = this.#reader.next(maxBytes + 1 + maxBodyBytes)
      if (frame === undefined || this.#ending !== undefined) return
      const message = readGuestMessage(frame, this.messageLimits)
      if (message === undefined) {
        // Only code that escaped from the realm can send an invalid message.
        this.#ending = 'garbled'
        this.kill()
      } else if (message.kind === 'ready') void this.#confine().then(this.#settleReady)
      else this.listener?.message(message)
    }
  }

  /** Finds the process of the guest, and removes rights that the guest needed only for its start. */
  async #confine(): Promise<boolean> {
    if (this.pid !== undefined) return true
    const { wrapper, descriptorLimiter } = this.#confinement
    const own = this.wrapperPid
    this.pid = own !== undefined && wrapper.includes('--fork') ? findChild(own) : own
    if (this.pid === undefined) return false
    return descriptorLimiter === undefined || (await limitDescriptors(descriptorLimiter, this.pid))
  }
}

/** Returns the pid, as the host sees it, of the only child of the process `pid`. Undefined if the child has ended. */
function findChild(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim()) || undefined
  } catch {
    return undefined
  }
}

function limitDescriptors([command, ...args]: readonly string[], pid: number): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(command!, [...args, String(pid)], { env: {} }, (error) => resolve(error === null))
  })
}
