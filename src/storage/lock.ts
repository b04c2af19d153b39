/**
 * Who may open the vault's files: one process at a time, by a lock that a crash cannot leave half made and that two
 * waiters cannot both break. Knows the lock's files and whether an owner lives, nothing of what is owned.
 */

import type { Clock, Random } from '../crypto/ports.js'
import { CofferError } from '../errors.js'
import { encodeId } from './bytes.js'
import { type Files, readWhole } from './files.js'

/** What tells one process from every other. */
export interface ProcessFacts {
  pid: number
  /** When the living process of this number began, in any unchanging spelling; undefined when there is none. */
  startOf(pid: number): string | undefined
  /** Tells this run of the machine (and this space of process numbers) from others. */
  boot: string
  host: string
}

/** What a lock says of its owner. */
export interface Owner {
  pid: number
  started: string
  boot: string
  host: string
  /** When it began to ask for the vault, ms since the epoch. */
  since: number
  nonce: string
}

export interface OwnershipOptions {
  files: Files
  directory: string
  facts: ProcessFacts
  random: Random
  clock: Clock
  wait(ms: number): Promise<void>
  /** How long to wait for another owner in all. */
  patienceMs: number
}

/** The vault is ours until it is released. */
export interface Ownership {
  owner: Owner
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

type Life = 'alive' | 'dead' | 'unknown'

/**
 * Takes the vault, waiting for another owner up to `patienceMs`, and over from one that died.
 * @throws CofferError `unavailable` when it stays taken or its owner is on another machine, `vault_missing`,
 * `storage_failed`.
 */
export async function takeOwnership(options: OwnershipOptions): Promise<Ownership> {
  const { files, directory, patienceMs } = options
  if (files.facts(directory) === undefined) {
    throw new CofferError(
      'vault_missing',
      `There is no vault in ${directory}. Create one with \`coffer init\`.`,
    )
  }
  const owner = describeSelf(options)
  const own = `${directory}/${PRIVATE}${owner.pid}-${owner.nonce}`
  try {
    writeOwner(files, own, owner)
    let waitedMs = 0
    let yields = 0
    for (let pauseMs = FIRST_WAIT_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_WAIT_MS)) {
      const isTurn = yields >= YIELDS || !isOthersTurn(options, owner)
      if (isTurn && tryToTake(options, own)) break
      if (!isTurn) yields++
      if (waitedMs >= patienceMs) throw occupied(options, waitedMs)
      await options.wait(pauseMs)
      waitedMs += pauseMs
    }
  } finally {
    files.remove(own)
  }
  sweep(options)
  return { owner, release: () => release(files, directory, owner) }
}

function describeSelf({ facts, random, clock }: OwnershipOptions): Owner {
  const { pid, boot, host } = facts
  return {
    pid,
    started: facts.startOf(pid) ?? '',
    boot,
    host,
    since: clock(),
    nonce: encodeId(random.bytes(16)),
  }
}

/** True when the lock is free and a living process has been waiting for it longer than this one. */
function isOthersTurn({ files, directory, facts }: OwnershipOptions, self: Owner): boolean {
  if (files.facts(`${directory}/${LOCK}`) !== undefined) return false
  const waiting = files.list(directory).filter((name) => name.startsWith(PRIVATE))
  return waiting.some((name) => {
    const other = readLock(files, `${directory}/${name}`)
    if (other === undefined || other.nonce === UNREADABLE || judge(other, facts) !== 'alive') return false
    return other.since < self.since || (other.since === self.since && other.nonce < self.nonce)
  })
}

/** One try: true when the lock is ours. A dead owner's lock is taken away first. */
function tryToTake(options: OwnershipOptions, own: string): boolean {
  const { files, directory, facts } = options
  const path = `${directory}/${LOCK}`
  if (files.link(own, path)) return true
  const holder = readLock(files, path)
  if (holder === undefined) return files.link(own, path)
  if (judge(holder, facts) !== 'dead') return false
  return breakLock(options, own, path, holder.nonce) && files.link(own, path)
}

/**
 * Takes away the lock at `path` that a dead process left. Only who holds the claim on its nonce may: so of two who
 * found it dead, the slower cannot take away what the faster has made since. A claim is a lock of its own kind and
 * is broken in the same way.
 */
function breakLock(options: OwnershipOptions, own: string, path: string, nonce: string): boolean {
  const { files, directory, facts } = options
  const claim = `${directory}/${CLAIM}${nonce}`
  if (!files.link(own, claim)) {
    const claimer = readLock(files, claim)
    if (claimer === undefined || judge(claimer, facts) !== 'dead') return false
    return breakLock(options, own, claim, claimer.nonce) && breakLock(options, own, path, nonce)
  }
  const isStill = readLock(files, path)?.nonce === nonce
  if (isStill) files.remove(path)
  files.remove(claim)
  return isStill
}

function judge(owner: Owner, facts: ProcessFacts): Life {
  if (owner.nonce === UNREADABLE) return 'dead'
  if (owner.host !== facts.host) return 'unknown'
  if (owner.boot !== facts.boot) return 'dead'
  return facts.startOf(owner.pid) === owner.started ? 'alive' : 'dead'
}

function writeOwner(files: Files, path: string, owner: Owner): void {
  const file = files.open(path, 'create')
  if (file === undefined)
    throw new CofferError('storage_failed', `Cannot create ${path}: its directory is gone.`)
  try {
    files.write(file, Buffer.from(JSON.stringify(owner)), 0)
  } finally {
    files.close(file)
  }
}

/** Whom a lock names, or undefined when there is none. */
function readLock(files: Files, path: string): Owner | undefined {
  const bytes = readWhole(files, path, LOCK_LIMIT)
  if (bytes === undefined) return undefined
  try {
    const owner = JSON.parse(Buffer.from(bytes).toString()) as Partial<Owner>
    if (typeof owner.nonce === 'string' && typeof owner.pid === 'number') return owner as Owner
  } catch {
    // Judged below, as what it is.
  }
  return { pid: 0, started: '', boot: '', host: '', since: 0, nonce: UNREADABLE }
}

function release(files: Files, directory: string, owner: Owner): void {
  const path = `${directory}/${LOCK}`
  if (readLock(files, path)?.nonce === owner.nonce) files.remove(path)
}

/** Removes what killed processes left of their attempts. Contract: the caller owns the vault. */
function sweep({ files, directory, facts }: OwnershipOptions): void {
  for (const name of files.list(directory)) {
    if (!name.startsWith(PRIVATE) && !name.startsWith(CLAIM)) continue
    const path = `${directory}/${name}`
    const owner = readLock(files, path)
    if (owner === undefined) continue
    // One that cannot be read may be under way: then the number in its name lives.
    const writer = Number(name.slice(PRIVATE.length).split('-')[0])
    const isUnderWay = owner.nonce === UNREADABLE && facts.startOf(writer) !== undefined
    if (!isUnderWay && judge(owner, facts) === 'dead') files.remove(path)
  }
}

/** Who has the vault, and whether that process lives; undefined when nobody has it. Reads `lock` alone. */
export function readOwner(
  files: Files,
  directory: string,
  facts: ProcessFacts,
): { owner: Owner; life: Life } | undefined {
  const owner = readLock(files, `${directory}/${LOCK}`)
  return owner === undefined ? undefined : { owner, life: judge(owner, facts) }
}

function occupied({ files, directory, facts }: OwnershipOptions, waitedMs: number): CofferError {
  const held = readOwner(files, directory, facts)
  const waited = `Waited ${Math.round(waitedMs / 1000)} s.`
  if (held?.life === 'unknown') {
    const { pid, host } = held.owner
    return new CofferError(
      'unavailable',
      `The vault is held by process ${pid} on ${host}, which cannot be judged from here. ${waited} ` +
        `If nothing there uses it any more, remove ${directory}/${LOCK}.`,
    )
  }
  const who = held === undefined ? 'other processes in turn' : `process ${held.owner.pid}`
  return new CofferError('unavailable', `The vault is in use by ${who}. ${waited} Try again when it is free.`)
}
