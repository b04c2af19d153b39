/** The lock file of a vault: only the process that holds the lock may open the vault. */
import type * as ChildProcess from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import type { Clock, RandomSource } from '../crypto/ports.js'
import { quoteWord } from '../domain/text/quote-word.js'
import { CofferError, codeOf, conflict } from '../errors.js'
import { toHex } from './bytes.js'
import { describeOtherKind, type Files, readWhole, removeQuietly } from './files.js'
import { noVault } from './vault-file.js'

export interface ProcessIdentity {
  pid: number
  /**
   * Returns the start time of a process as a text, which is only compared for equality. Returns undefined if the
   * process does not run.
   */
  startOf(pid: number): string | undefined
  /** The id of the machine's boot, `/`, and the PID namespace. Empty if the system reports neither. */
  boot: string
  host: string
}

export interface LockHolder {
  pid: number
  started: string
  boot: string
  host: string
  /** When the process began to wait for the lock, ms since the epoch. */
  since: number
  nonce: string
  /** True if the holder is a server, which keeps the lock for long and answers the commands of other processes. */
  isServer?: boolean
}

export interface LockOptions {
  files: Files
  directory: string
  name?: string
  identity: ProcessIdentity
  random: RandomSource
  clock: Clock
  notice(text: string): void
  wait(ms: number): Promise<void>
  /** The longest wait for one holder. If another process acquires the lock, the wait begins again. */
  timeoutMs: number
  isServer?: boolean
  /** May throw to end the wait immediately, for example because the holder is a running server. */
  checkHolder?(holder: LockHolder): void
  /**
   * Returns true if the holder has certainly ended. Called only if the holder is in another container of this machine.
   */
  hasEnded?(holder: LockHolder): Promise<boolean>
}

export interface Lock {
  holder: LockHolder
  /**
   * A second call does nothing. If the lock file cannot be removed, the function prints a warning and does not throw,
   * because the work that needed the lock is complete.
   */
  release(): void
}

const LOCK = 'lock'
/**
 * Part of the name of a process's private file. To acquire the lock, a process creates its private file, and then a
 * hard link to this file. The hard link has the name of the lock.
 */
const PRIVATE = '.p-'
/** In the name of a claim, this text is between the name and the nonce of the lock. See {@link breakLock}. */
const CLAIM = '.b-'
const LOCK_LIMIT = 4096
const FIRST_WAIT_MS = 2
const LONGEST_WAIT_MS = 20
/**
 * Stands for the nonce of an unreadable lock. Only a power cut leaves an unreadable lock, because a lock file is
 * complete before it gets its name.
 */
const UNREADABLE = 'unreadable'
const BEGINNING = '{"pid":'

export async function acquireLock(options: LockOptions): Promise<Lock> {
  const { files, directory, name = LOCK, identity, random, clock } = options
  if (files.stat(directory) === undefined) throw noVault(directory)
  const { pid, boot, host } = identity
  const started = identity.startOf(pid) ?? ''
  const server = options.isServer ? { isServer: true } : {}
  const holder = { pid, started, boot, host, since: clock(), nonce: toHex(random.bytes(16)), ...server }
  const path = `${directory}/${name}`
  const own = `${path}${PRIVATE}${holder.pid}-${holder.nonce}`
  try {
    createLockFile(options, own, holder)
    await waitForLock(options, own)
  } catch (error) {
    removeQuietly(files, own)
    throw error
  }
  files.remove(own)
  sweep(options)
  const release = () => {
    try {
      if (readLock(files, path)?.nonce === holder.nonce) files.remove(path)
    } catch (error) {
      if (!(error instanceof CofferError)) throw error
      options.notice(describeKeptLock(path, error))
    }
  }
  return { holder, release }
}

function describeKeptLock(path: string, { message }: CofferError): string {
  return (
    `The lock ${path} was not removed. ${message} This affects no data. When this process has ended, the next command ` +
    `removes the lock. If that fails too, remove it: rm -r ${quoteWord(path)}`
  )
}

/**
 * In a read-only directory, no lock file can be created, and even a command that only reads fails. Without a lock, a
 * read would not be safe: another machine may have mounted this disk as writable, and a process there may change the
 * vault. @throws CofferError `storage_failed`
 */
function createLockFile(
  { files, directory, name = LOCK }: LockOptions,
  own: string,
  holder: LockHolder,
): void {
  try {
    writeHolder(files, own, holder)
  } catch (error) {
    const code = error instanceof CofferError ? codeOf(error.cause) : ''
    const remedy = name === LOCK ? describeUnwritable(code, directory) : undefined
    if (remedy === undefined) throw error
    throw new CofferError('storage_failed', remedy, {
      cause: error,
      toCallers: 'The directory of the vault cannot be written.',
    })
  }
}

/** Explains the error codes of a directory that is not writable. Returns undefined for all other codes. */
function describeUnwritable(code: string, directory: string): string | undefined {
  const word = quoteWord(directory)
  if (code === 'EROFS')
    return (
      `${directory} is on a read-only file system, and commands need a lock file in the vault. Copy the vault to a ` +
      `writable place while no process has it open, and use the copy: cp -a ${word} COPY, then --vault COPY.`
    )
  if (code === 'EACCES' || code === 'EPERM')
    return (
      `You may not create files in ${directory}, and commands need a lock file in the vault. If the vault is yours, run ` +
      `\`chmod u+rwx ${word}\`. Otherwise copy it to a writable place while no process has it open: cp -a ${word} COPY`
    )
  return undefined
}

async function waitForLock(options: LockOptions, own: string): Promise<void> {
  const { files, directory, name, identity, timeoutMs, checkHolder } = options
  let waitedMs = 0
  let totalMs = 0
  let last: string | undefined
  for (let pauseMs = FIRST_WAIT_MS; !(await tryToAcquire(options, own)); ) {
    const held = readLockHolder(files, directory, identity, name)
    if (held?.state === 'alive') checkHolder?.(held.holder)
    if (held !== undefined && held.holder.nonce !== last) {
      last = held.holder.nonce
      waitedMs = 0
    }
    if (waitedMs >= timeoutMs) throw lockUnavailable(options, totalMs)
    await options.wait(pauseMs)
    waitedMs += pauseMs
    totalMs += pauseMs
    pauseMs = Math.min(2 * pauseMs, LONGEST_WAIT_MS)
  }
}

/** Breaks the lock of a dead holder first. Returns true if the lock is acquired. */
async function tryToAcquire(options: LockOptions, own: string): Promise<boolean> {
  const { files, directory, name = LOCK, identity } = options
  const path = `${directory}/${name}`
  if (files.link(own, path)) return true
  const holder = readLock(files, path)
  if (holder === undefined) return files.link(own, path)
  const state = stateOf(holder, identity)
  if (state === 'alive') return false
  // `hasEnded` is called only for a holder on this machine. On a network file system, the socket of a server on another
  // machine looks abandoned.
  const mayAsk = state === 'unknown' && isOfSameBoot(holder, identity)
  if (state === 'unknown' && !(mayAsk && (await options.hasEnded?.(holder)))) return false
  return breakLock(options, own, path, holder.nonce) && files.link(own, path)
}

/**
 * Removes the lock of a dead process. Only the process that has a claim on the lock's nonce may remove the lock.
 * Without claims, the slower of two processes could remove the new lock of the faster process. A claim is a lock too:
 * if the claiming process is dead, its claim is broken in the same way.
 */
function breakLock(options: LockOptions, own: string, path: string, nonce: string): boolean {
  const { files, directory, name = LOCK, identity } = options
  const claim = `${directory}/${name}${CLAIM}${nonce}`
  if (!files.link(own, claim)) {
    const claimer = readLock(files, claim)
    if (claimer === undefined || stateOf(claimer, identity) !== 'dead') return false
    return breakLock(options, own, claim, claimer.nonce) && breakLock(options, own, path, nonce)
  }
  const isStill = readLock(files, path)?.nonce === nonce
  if (isStill) files.remove(path)
  files.remove(claim)
  return isStill
}

function stateOf(holder: LockHolder, identity: ProcessIdentity): 'alive' | 'dead' | 'unknown' {
  if (holder.nonce === UNREADABLE) return 'dead'
  const isHere = isOfSameBoot(holder, identity)
  if (!isHere && holder.host !== identity.host) return 'unknown'
  if (!isHere && holder.boot !== identity.boot) return 'dead'
  // The holder is in another container of this machine, perhaps with the same host name. Its PID belongs to another PID
  // namespace, so the process cannot be looked up here.
  if (holder.boot !== identity.boot) return 'unknown'
  return identity.startOf(holder.pid) === holder.started ? 'alive' : 'dead'
}

/** Returns true even if the holder and this process have different PID namespaces. */
function isOfSameBoot(holder: LockHolder, identity: ProcessIdentity): boolean {
  const [boot] = identity.boot.split('/')
  return boot !== '' && String(holder.boot).split('/')[0] === boot
}

function writeHolder(files: Files, path: string, holder: LockHolder): void {
  const file = files.create(path)
  try {
    files.write(file, Buffer.from(JSON.stringify(holder)), 0)
  } finally {
    files.close(file)
  }
}

/** @throws CofferError `conflict` if the file is not a lock */
function readLock(files: Files, path: string): LockHolder | undefined {
  if (describeOtherKind(files, path) !== undefined) throw foreign(path)
  const bytes = readWhole(files, path, LOCK_LIMIT)
  if (bytes === undefined) return undefined
  const text = Buffer.from(bytes).toString()
  try {
    const holder = JSON.parse(text) as Partial<LockHolder>
    if (typeof holder.nonce === 'string' && typeof holder.pid === 'number') return holder as LockHolder
  } catch {
    // The check below finds out whether a power cut has damaged the lock.
  }
  // A power cut may leave only the beginning of a lock's text, or zeros.
  const left = text.replace(/\0+$/, '').slice(0, BEGINNING.length)
  if (!BEGINNING.startsWith(left)) throw foreign(path)
  return { pid: 0, started: '', boot: '', host: '', since: 0, nonce: UNREADABLE }
}

function foreign(path: string): CofferError {
  return conflict(
    `${path} is not a lock of Coffer, but has its name. Move it away, or use another directory.`,
  )
}

function sweep({ files, directory, name = LOCK, identity }: LockOptions): void {
  for (const each of files.list(directory)) {
    if (!each.startsWith(name + PRIVATE) && !each.startsWith(name + CLAIM)) continue
    const path = `${directory}/${each}`
    const holder = readLock(files, path)
    if (holder === undefined) continue
    // A private file that cannot be read may be incomplete. The file's name contains the PID of the process that writes
    // the file.
    const writer = Number(each.slice((name + PRIVATE).length).split('-')[0])
    const isUnderWay = holder.nonce === UNREADABLE && identity.startOf(writer) !== undefined
    if (!isUnderWay && stateOf(holder, identity) === 'dead') files.remove(path)
  }
}

export function readLockHolder(files: Files, directory: string, identity: ProcessIdentity, name = LOCK) {
  const holder = readLock(files, `${directory}/${name}`)
  return holder === undefined ? undefined : { holder, state: stateOf(holder, identity) }
}

function lockUnavailable(options: LockOptions, waitedMs: number): CofferError {
  const { files, directory, name = LOCK, identity } = options
  const path = `${directory}/${name}`
  const held = readLockHolder(files, directory, identity, name)
  const waited = `Waited ${Math.round(waitedMs / 1000)} s.`
  if (held?.state === 'unknown') {
    const { pid, host } = held.holder
    return new CofferError(
      'unavailable',
      `Process ${pid} on ${host} holds ${path}. ` +
        'It is in another container or on another machine, so this machine cannot check whether that process is alive. ' +
        `${waited} If that process has ended, remove ${path}.`,
    )
  }
  const what = name === LOCK ? 'The vault' : path
  if (held === undefined)
    return new CofferError(
      'unavailable',
      `${what} was in use by one process after another. ${waited} Try again.`,
    )
  const { pid } = held.holder
  return new CofferError(
    'unavailable',
    `${what} is in use by process ${pid}. ${waited} Try again when it is free. ` +
      `If that process is stopped, resume it: kill -CONT ${pid}`,
  )
}

/** A PID alone does not identify the holder of a lock, because a new process may get the PID of a dead process. */
export function readProcessIdentity(pid: number): ProcessIdentity {
  return { pid, startOf, boot: readBoot(), host: hostname() }
}

/** Returns the boot and the PID namespace. Each namespace has separate PIDs. */
function readBoot(): string {
  const boot = readText('/proc/sys/kernel/random/boot_id')?.trim() ?? ''
  try {
    return `${boot}/${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return boot
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/**
 * See proc(5): field 3 is the state, field 22 the start in ticks since boot. A zombie (Z) and a dead process (X) count
 * as ended.
 */
function startOf(pid: number): string | undefined {
  const stat = readText(`/proc/${pid}/stat`)
  if (stat === undefined) return readText('/proc/self/stat') === undefined ? startByPs(pid) : undefined
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
}

/** Used on systems without /proc. POSIX defines these options of ps(1). */
function startByPs(pid: number): string | undefined {
  // The module is loaded only when it is needed, because loading takes 5 ms and most systems have /proc.
  const { execFileSync } = createRequire(import.meta.url)('node:child_process') as typeof ChildProcess
  try {
    const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore']
    const line = execFileSync('ps', ['-o', 'state=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio,
    }).trim()
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '')
  } catch {
    return undefined
  }
}
