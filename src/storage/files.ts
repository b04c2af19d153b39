import { dirname } from 'node:path'
import { CofferError, codeOf, damaged } from '../errors.js'

/** Describes a path, without following a link. */
export interface FileStat {
  kind: 'file' | 'directory' | 'other'
  mode: number
  /** User id. */
  owner: number
  size: number
}

export type Opening = 'read' | 'write'

/** Synchronous except `syncDataBeside`. Every failure is a CofferError `storage_failed` that says what to do. */
export interface Files {
  /** The user id of this process; undefined where the system has none (Windows). */
  readonly user: number | undefined
  /** A descriptor, or undefined when nothing is there. Never follows a symbolic link. */
  open(path: string, opening: Opening): number | undefined
  /** Makes a file that must not exist, mode 0600, and opens it for writing. */
  create(path: string): number
  close(file: number): void
  /** Bytes read into `target` from `position` on: fewer than asked only at the end of the file. */
  read(file: number, target: Uint8Array, position: number): number
  /** Writes all of `bytes` at `position`. */
  write(file: number, bytes: Uint8Array, position: number): void
  size(file: number): number
  truncate(file: number, length: number): void
  /** fdatasync: makes contents and length durable. */
  syncData(file: number): void
  /** Syncs, without blocking the process, what was written to the file at `path` until now. */
  syncDataBeside(path: string): Promise<void>
  sync(file: number): void
  /** Makes the names in the directory durable. */
  syncDirectory(path: string): void
  rename(from: string, to: string): void
  /** False when `to` exists. */
  link(from: string, to: string): boolean
  /** False when nothing was there. */
  remove(path: string): boolean
  stat(path: string): FileStat | undefined
  list(path: string): string[]
  /** Mode 0700; false when it exists. */
  makeDirectory(path: string): boolean
}

const REASONS: Record<string, string> = {
  EACCES: 'permission denied. Check who owns it and its mode.',
  EPERM: 'permission denied. Check who owns it and its mode.',
  EROFS: 'the file system is read-only. Mount it writable.',
  ENOSPC: 'no space is left on the disk. Free some and try again.',
  EFBIG: 'a file would exceed the size limit of this process. Raise it (ulimit -f) and start again.',
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

/** Returns (does not throw) a CofferError `storage_failed` for an error of node:fs. */
export function storageError(action: string, path: string, cause: unknown): CofferError {
  const code = codeOf(cause)
  const reason = REASONS[code] ?? `the system says ${code === '' ? 'nothing more' : code}.`
  const toCallers = `Cannot ${action} a file of the vault: ${reason}`
  return new CofferError('storage_failed', `Cannot ${action} ${path}: ${reason}`, { cause, toCallers })
}

/** Makes a directory and its missing parents, durably, all of them with mode 0700. */
export function makeDirectories(files: Files, path: string): void {
  if (files.stat(path) !== undefined) return
  const parent = dirname(path)
  if (parent !== path) makeDirectories(files, parent)
  if (files.makeDirectory(path)) files.syncDirectory(parent)
}

/** Undefined without a file. @throws CofferError `vault_damaged`, before reading, if it has more than `limit` bytes */
export function readWhole(files: Files, path: string, limit: number): Uint8Array | undefined {
  const file = files.open(path, 'read')
  if (file === undefined) return undefined
  try {
    const size = files.size(file)
    if (size > limit) throw damaged(`${path} is larger than it can be (${size} bytes)`)
    const bytes = new Uint8Array(size)
    return bytes.subarray(0, files.read(file, bytes, 0))
  } finally {
    files.close(file)
  }
}

/** Removes a file that nothing needs. If that fails, the next opening of the vault removes it. */
export function removeQuietly(files: Files, path: string): void {
  try {
    files.remove(path)
  } catch {
    // Nothing depends on it.
  }
}
