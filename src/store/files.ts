/**
 * The small port through which the engine touches the disk, and its one real implementation over node:fs.
 * It knows modes, links and errors of the operating system, and nothing of what the files hold.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { userInfo } from 'node:os'
import { dirname } from 'node:path'
import { CofferError } from '../errors.js'

/** What is known of a path without following a link. */
export interface FileFacts {
  kind: 'file' | 'directory' | 'link' | 'other'
  /** Permission bits. */
  mode: number
  /** Owner, as a user id. */
  owner: number
  size: number
}

/** `read` and `write` open what is there; `create` makes a file that must not exist, mode 0600. */
export type Opening = 'read' | 'write' | 'create'

/** Synchronous on purpose. Every failure is a CofferError `storage_failed` that says what to do. */
export interface Files {
  /** The user id that files of ours have; undefined where the system has no such thing (Windows). */
  readonly user: number | undefined
  /** A descriptor, or undefined when nothing is there. Never follows a symbolic link. */
  open(path: string, opening: Opening): number | undefined
  close(file: number): void
  /** Bytes read into `target` from `position` on: fewer than asked only at the end of the file. */
  read(file: number, target: Uint8Array, position: number): number
  /** Writes all of `bytes` at `position`. */
  write(file: number, bytes: Uint8Array, position: number): void
  size(file: number): number
  truncate(file: number, length: number): void
  /** fdatasync: contents and length are safe. */
  syncData(file: number): void
  /** fsync. */
  sync(file: number): void
  /** The names in the directory are safe. */
  syncDirectory(path: string): void
  rename(from: string, to: string): void
  /** False when `to` exists. */
  link(from: string, to: string): boolean
  /** False when nothing was there. */
  remove(path: string): boolean
  facts(path: string): FileFacts | undefined
  list(path: string): string[]
  /** Mode 0700; false when it exists. */
  makeDirectory(path: string): boolean
}

/** What the system's codes mean to a person, and what to do about them. */
const REASONS: Record<string, string> = {
  EACCES: 'permission denied. Check who owns it and its mode.',
  EPERM: 'permission denied. Check who owns it and its mode.',
  EROFS: 'the file system is read-only. Mount it writable.',
  ENOSPC: 'no space is left on the disk. Free some and try again.',
  EDQUOT: 'the disk quota is used up. Free some space and try again.',
  EIO: 'the disk reports an error. Check the disk, then run `coffer vault verify`.',
  ELOOP: 'it is a symbolic link, which a vault never follows. Remove the link.',
  EMFILE: 'too many files are open. Raise the limit (ulimit -n).',
  ENFILE: 'too many files are open on this system.',
  ENOENT: 'a directory of the path does not exist. Create it first.',
  EEXIST: 'it exists already. Choose another name.',
  ENOTDIR: 'a part of the path is not a directory. Choose another path.',
  EISDIR: 'it is a directory. Name a file.',
  ENAMETOOLONG: 'the path is too long. Choose a shorter one.',
}

/** Wraps what node:fs threw. @throws never: it returns the CofferError `storage_failed`. */
export function storageError(action: string, path: string, cause: unknown): CofferError {
  const code = codeOf(cause)
  const reason = REASONS[code] ?? `the system says ${code === '' ? 'nothing more' : code}.`
  return new CofferError('storage_failed', `Cannot ${action} ${path}: ${reason}`, { cause })
}

function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : ''
}

function attempt<T>(action: string, path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw storageError(action, path, error)
  }
}

/** `work`'s result, or `otherwise` when it fails with `code`. */
function attemptUnless<T, U>(code: string, otherwise: U, action: string, path: string, work: () => T): T | U {
  try {
    return work()
  } catch (error) {
    if (codeOf(error) === code) return otherwise
    throw storageError(action, path, error)
  }
}

const FLAGS: Record<Opening, number> = {
  read: constants.O_RDONLY,
  write: constants.O_RDWR,
  create: constants.O_RDWR | constants.O_CREAT | constants.O_EXCL,
}

/** node:fs. Descriptors carry their path along, for messages. */
class NodeFiles implements Files {
  readonly user = userOf(userInfo().uid)
  readonly #paths = new Map<number, string>()

  open(path: string, opening: Opening): number | undefined {
    const file = attemptUnless('ENOENT', undefined, opening === 'create' ? 'create' : 'open', path, () =>
      // Without blocking, so that a pipe in the place of a file is refused instead of waited for.
      openSync(path, FLAGS[opening] | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600),
    )
    if (file === undefined) return undefined
    if (!fstatSync(file).isFile()) {
      closeSync(file)
      throw new CofferError(
        'storage_failed',
        `Cannot open ${path}: it is no file. Remove what stands in its place.`,
      )
    }
    this.#paths.set(file, path)
    // A wider umask cannot add bits to 0600, a narrower one may have taken some away.
    if (opening === 'create') attempt('set the mode of', path, () => fchmodSync(file, 0o600))
    return file
  }

  close(file: number): void {
    const path = this.#path(file)
    this.#paths.delete(file)
    attempt('close', path, () => closeSync(file))
  }

  read(file: number, target: Uint8Array, position: number): number {
    return attempt('read', this.#path(file), () => {
      let done = 0
      while (done < target.length) {
        const count = readSync(file, target, done, target.length - done, position + done)
        if (count === 0) break
        done += count
      }
      return done
    })
  }

  write(file: number, bytes: Uint8Array, position: number): void {
    attempt('write', this.#path(file), () => {
      for (let done = 0; done < bytes.length; ) {
        done += writeSync(file, bytes, done, bytes.length - done, position + done)
      }
    })
  }

  size(file: number): number {
    return attempt('examine', this.#path(file), () => fstatSync(file).size)
  }

  truncate(file: number, length: number): void {
    attempt('cut', this.#path(file), () => ftruncateSync(file, length))
  }

  syncData(file: number): void {
    attempt('sync', this.#path(file), () => fdatasyncSync(file))
  }

  sync(file: number): void {
    attempt('sync', this.#path(file), () => fsyncSync(file))
  }

  syncDirectory(path: string): void {
    attempt('sync', path, () => {
      const file = openSync(path, constants.O_RDONLY)
      try {
        fsyncSync(file)
      } finally {
        closeSync(file)
      }
    })
  }

  rename(from: string, to: string): void {
    attempt('replace', to, () => renameSync(from, to))
  }

  link(from: string, to: string): boolean {
    return attemptUnless('EEXIST', false, 'create', to, () => {
      linkSync(from, to)
      return true
    })
  }

  remove(path: string): boolean {
    return attemptUnless('ENOENT', false, 'remove', path, () => {
      unlinkSync(path)
      return true
    })
  }

  facts(path: string): FileFacts | undefined {
    const stats = attemptUnless('ENOENT', undefined, 'examine', path, () => lstatSync(path))
    if (stats === undefined) return undefined
    return { kind: kindOf(stats), mode: stats.mode & 0o7777, owner: stats.uid, size: stats.size }
  }

  list(path: string): string[] {
    return attempt('list', path, () => readdirSync(path))
  }

  makeDirectory(path: string): boolean {
    return attemptUnless('EEXIST', false, 'create', path, () => {
      mkdirSync(path, { mode: 0o700 })
      return true
    })
  }

  #path(file: number): string {
    return this.#paths.get(file) ?? `descriptor ${file}`
  }
}

/** Makes a directory, safely on the disk, and those above it that are not there, all of them 0700. */
export function makeDirectories(files: Files, path: string): void {
  if (files.facts(path) !== undefined) return
  const parent = dirname(path)
  if (parent !== path) makeDirectories(files, parent)
  if (files.makeDirectory(path)) files.syncDirectory(parent)
}

function userOf(uid: number): number | undefined {
  return uid < 0 ? undefined : uid
}

function kindOf(stats: Stats): FileFacts['kind'] {
  if (stats.isSymbolicLink()) return 'link'
  if (stats.isFile()) return 'file'
  return stats.isDirectory() ? 'directory' : 'other'
}

/** The real disk. */
export function nodeFiles(): Files {
  return new NodeFiles()
}

/**
 * A whole file of at most `limit` bytes, or undefined when nothing is there.
 * @throws CofferError `vault_damaged` when it is larger: nothing of that size is read into memory.
 */
export function readWhole(files: Files, path: string, limit: number): Uint8Array | undefined {
  const file = files.open(path, 'read')
  if (file === undefined) return undefined
  try {
    const size = files.size(file)
    if (size > limit)
      throw new CofferError('vault_damaged', `${path} is larger than it can be (${size} bytes).`)
    const bytes = new Uint8Array(size)
    return bytes.subarray(0, files.read(file, bytes, 0))
  } finally {
    files.close(file)
  }
}

/**
 * Puts `bytes` in the place of `path`, whole or not at all, safe when it returns: a new file, synced, renamed
 * over the old one, and the directory synced.
 */
export function replaceWhole(
  files: Files,
  directory: string,
  name: string,
  bytes: Uint8Array,
  nonce: string,
): void {
  const temporary = `${directory}/${name}.tmp-${nonce}`
  const file = files.open(temporary, 'create')
  if (file === undefined)
    throw new CofferError('storage_failed', `Cannot create ${temporary}: ${directory} is gone.`)
  try {
    files.write(file, bytes, 0)
    files.sync(file)
  } catch (error) {
    files.close(file)
    removeQuietly(files, temporary)
    throw error
  }
  files.close(file)
  files.rename(temporary, `${directory}/${name}`)
  files.syncDirectory(directory)
}

/** Removes a file that nothing needs. One that resists is swept by the vault's next owner. */
export function removeQuietly(files: Files, path: string): void {
  try {
    files.remove(path)
  } catch {
    // The failure that led here is the one to report.
  }
}
