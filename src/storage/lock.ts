/**
 * Who may open the vault's files: one process at a time, by a lock that a crash cannot leave half made and that two
 * waiters cannot both break. Knows the lock's files and whether an owner lives, nothing of what is owned.
 */

import type { Clock, RandomSource } from '../crypto/ports.js'
import { CofferError } from '../errors.js'
import { encodeId } from './bytes.js'
import { type Files, readWhole } from './files.js'

/** What tells one process from every other. */
export interface ProcessIdentity {
  pid: number
  /** When the living process of this number began, in any unchanging spelling; undefined when there is none. */
  startOf(pid: number): string | undefined
  /** Tells this run of the machine (and this space of process numbers) from others. */
  boot: string
  host: string
}

/** What a lock says of its owner. */
export interface LockHolder {
  pid: number
  started: string
  boot: string
  host: string
  /** When it began to ask for the vault, ms since the epoch. */
  since: number
  nonce: string
}

export interface LockOptions {
  files: Files
  directory: string
  identity: ProcessIdentity
  random: RandomSource
  clock: Clock
  wait(ms: number): Promise<void>
  /** How long to wait for another owner in all. */
  patienceMs: number
}

/** The vault is ours until it is released. */
export interface Lock {
  holder: LockHolder
  /** Lets go; doing so again changes nothing. */
  release(): void
}

const LOCK = 'lock'
const PRIVATE = 'lock.p-'
const CLAIM = 'lock.b-'
const LOCK_LIMIT = 4096
const FIRST_WAIT_MS = 2
const LONGEST_WAIT_MS = 20
/** So often a waiter finds the lock free and leaves it to those who came before; one that does not take it is asleep. */
const YIELDS = 20
/** The nonce of a lock that cannot be read. A lock is linked whole, so only a power cut leaves such a one. */
const UNREADABLE = 'unreadable'

type HolderState = 'alive' | 'dead' | 'unknown'

/**
 * Takes the vault, waiting for another owner up to `patienceMs`, and over from one that died.
 * @throws CofferError `unavailable` when it stays taken or its owner is on another machine, `vault_missing`,
 * `storage_failed`.
 */
export async function acquireLock(options: LockOptions): Promise<Lock> {
  const { files, directory, patienceMs } = options
  if (files.stat(directory) === undefined) {
    throw new CofferError(
      'vault_missing',
      `There is no vault in ${directory}. Create one with \`coffer init\`.`,
    )
  }
  const holder = describeSelf(options)
  const own = `${directory}/${PRIVATE}${holder.pid}-${holder.nonce}`
  try {
    writeHolder(files, own, holder)
    let waitedMs = 0
    let yields = 0
    for (let pauseMs = FIRST_WAIT_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_WAIT_MS)) {
      const isTurn = yields >= YIELDS || !isAnotherFirst(options, holder)
      if (isTurn && tryToAcquire(options, own)) break
      if (!isTurn) yields++
      if (waitedMs >= patienceMs) throw lockUnavailable(options, waitedMs)
      await options.wait(pauseMs)
      waitedMs += pauseMs
    }
  } finally {
    files.remove(own)
  }
  sweep(options)
  return { holder, release: () => release(files, directory, holder) }
}

function describeSelf({ identity, random, clock }: LockOptions): LockHolder {
  const { pid, boot, host } = identity
  return {
    pid,
    started: identity.startOf(pid) ?? '',
    boot,
    host,
    since: clock(),
    nonce: encodeId(random.bytes(16)),
  }
}

/** True when the lock is free and a living process has been waiting for it longer than this one. */
function isAnotherFirst({ files, directory, identity }: LockOptions, self: LockHolder): boolean {
  if (files.stat(`${directory}/${LOCK}`) !== undefined) return false
  const waiting = files.list(directory).filter((name) => name.startsWith(PRIVATE))
  return waiting.some((name) => {
    const other = readLock(files, `${directory}/${name}`)
    if (other === undefined || other.nonce === UNREADABLE || stateOf(other, identity) !== 'alive')
      return false
    return other.since < self.since || (other.since === self.since && other.nonce < self.nonce)
  })
}

/** One try: true when the lock is ours. A dead owner's lock is taken away first. */
function tryToAcquire(options: LockOptions, own: string): boolean {
  const { files, directory, identity } = options
  const path = `${directory}/${LOCK}`
  if (files.link(own, path)) return true
  const holder = readLock(files, path)
  if (holder === undefined) return files.link(own, path)
  if (stateOf(holder, identity) !== 'dead') return false
  return breakLock(options, own, path, holder.nonce) && files.link(own, path)
}

/**
 * Takes away the lock at `path` that a dead process left. Only who holds the claim on its nonce may: so of two who
 * found it dead, the slower cannot take away what the faster has made since. A claim is a lock of its own kind and
 * is broken in the same way.
 */
function breakLock(options: LockOptions, own: string, path: string, nonce: string): boolean {
  const { files, directory, identity } = options
  const claim = `${directory}/${CLAIM}${nonce}`
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

function stateOf(holder: LockHolder, identity: ProcessIdentity): HolderState {
  if (holder.nonce === UNREADABLE) return 'dead'
  if (holder.host !== identity.host) return 'unknown'
  if (holder.boot !== identity.boot) return 'dead'
  return identity.startOf(holder.pid) === holder.started ? 'alive' : 'dead'
}

function writeHolder(files: Files, path: string, holder: LockHolder): void {
  const file = files.open(path, 'create')
  if (file === undefined)
    throw new CofferError('storage_failed', `Cannot create ${path}: its directory is gone.`)
  try {
    files.write(file, Buffer.from(JSON.stringify(holder)), 0)
  } finally {
    files.close(file)
  }
}

/** Whom a lock names, or undefined when there is none. */
function readLock(files: Files, path: string): LockHolder | undefined {
  const bytes = readWhole(files, path, LOCK_LIMIT)
  if (bytes === undefined) return undefined
  try {
    const holder = JSON.parse(Buffer.from(bytes).toString()) as Partial<LockHolder>
    if (typeof holder.nonce === 'string' && typeof holder.pid === 'number') return holder as LockHolder
  } catch {
    // Judged below, as what it is.
  }
  return { pid: 0, started: '', boot: '', host: '', since: 0, nonce: UNREADABLE }
}

function release(files: Files, directory: string, holder: LockHolder): void {
  const path = `${directory}/${LOCK}`
  if (readLock(files, path)?.nonce === holder.nonce) files.remove(path)
}

/** Removes what killed processes left of their attempts. Contract: the caller owns the vault. */
function sweep({ files, directory, identity }: LockOptions): void {
  for (const name of files.list(directory)) {
    if (!name.startsWith(PRIVATE) && !name.startsWith(CLAIM)) continue
    const path = `${directory}/${name}`
    const holder = readLock(files, path)
    if (holder === undefined) continue
    // One that cannot be read may be under way: then the number in its name lives.
    const writer = Number(name.slice(PRIVATE.length).split('-')[0])
    const isUnderWay = holder.nonce === UNREADABLE && identity.startOf(writer) !== undefined
    if (!isUnderWay && stateOf(holder, identity) === 'dead') files.remove(path)
  }
}

/** Who has the vault, and whether that process lives; undefined when nobody has it. Reads `lock` alone. */
export function readLockHolder(
  files: Files,
  directory: string,
  identity: ProcessIdentity,
): { holder: LockHolder; state: HolderState } | undefined {
  const holder = readLock(files, `${directory}/${LOCK}`)
  return holder === undefined ? undefined : { holder, state: stateOf(holder, identity) }
}

function lockUnavailable({ files, directory, identity }: LockOptions, waitedMs: number): CofferError {
  const held = readLockHolder(files, directory, identity)
  const waited = `Waited ${Math.round(waitedMs / 1000)} s.`
  if (held?.state === 'unknown') {
    const { pid, host } = held.holder
    return new CofferError(
      'unavailable',
      `The vault is held by process ${pid} on ${host}, which cannot be judged from here. ${waited} ` +
        `If nothing there uses it any more, remove ${directory}/${LOCK}.`,
    )
  }
  const who = held === undefined ? 'other processes in turn' : `process ${held.holder.pid}`
  return new CofferError('unavailable', `The vault is in use by ${who}. ${waited} Try again when it is free.`)
}
