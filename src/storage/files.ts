import { dirname } from 'node:path'
import { CofferError, codeOf, damaged } from '../errors.js'

/** For a symbolic link, describes the link and not its target. */
export interface FileStat {
  kind: 'file' | 'directory' | 'link' | 'other'
  mode: number
  owner: number
  size: number
}

export type Opening = 'read' | 'write'

/** Only `syncDataBeside` is asynchronous. Every failure is a CofferError `storage_failed`. */
export interface Files {
  /** The user id of this process. Undefined on Windows, where processes have no user id. */
  readonly user: number | undefined
  /** Returns a descriptor, or undefined if there is no file. Never follows a symbolic link. */
  open(path: string, opening: Opening): number | undefined
  /** Creates a file of mode 0600 and opens it for writing. Fails if the file exists. */
  create(path: string): number
  close(file: number): void
  /**
   * Reads into `target` from `position` on. Returns the number of bytes read. This number is less than the length of
   * `target` only at the end of the file.
   */
  read(file: number, target: Uint8Array, position: number): number
  write(file: number, bytes: Uint8Array, position: number): void
  size(file: number): number
  truncate(file: number, length: number): void
  /** Makes contents and length durable (fdatasync). */
  syncData(file: number): void
  /** Syncs everything that was written to the file before the call. Does not block the process. */
  syncDataBeside(path: string): Promise<void>
  sync(file: number): void
  /** Makes new names in the directory durable. */
  syncDirectory(path: string): void
  rename(from: string, to: string): void
  /** Returns false if `to` exists. */
  link(from: string, to: string): boolean
  /** Returns false if there was no file. */
  remove(path: string): boolean
  stat(path: string): FileStat | undefined
  list(path: string): string[]
  /** Creates the directory with mode 0700. Returns false if the directory exists. */
  makeDirectory(path: string): boolean
}

const REASONS: Record<string, string> = {
  EACCES: 'permission denied. Check the owner and the mode.',
  EPERM: 'permission denied. Check the owner and the mode.',
  EROFS: 'the file system is read-only. Mount it writable.',
  ENOSPC: 'no space is left on the disk (see df -h), or no inode (see df -i). Free some and try again.',
  EFBIG: 'a file would exceed the size limit of this process. Raise it (ulimit -f) and start again.',
  EDQUOT: 'the disk quota is used up. Free some space and try again.',
  EIO: 'the disk reports an error. Check the disk, then run `coffer vault verify`.',
  ELOOP: 'it is a symbolic link, which a vault never follows. Remove the link.',
  EMFILE: 'too many files are open. Raise the limit (ulimit -n).',
  ENFILE: 'too many files are open on this system. Close some programs and try again.',
  ENOENT: 'a directory of the path does not exist. Create it first.',
  EEXIST: 'it exists already. Choose another name.',
  ENOTDIR: 'a part of the path is not a directory. Choose another path.',
  EISDIR: 'it is a directory. Name a file.',
  ENAMETOOLONG: 'the path is too long. Choose a shorter path.',
}

export function storageError(action: string, path: string, cause: unknown): CofferError {
  const code = codeOf(cause)
  const reason =
    REASONS[code] ?? (code === '' ? 'the system gives no reason.' : `the system gives the error ${code}.`)
  const toCallers = `Cannot ${action} a file of the vault: ${reason}`
  return new CofferError('storage_failed', `Cannot ${action} ${path}: ${reason}`, { cause, toCallers })
}

/** Creates a directory and its missing parents with mode 0700, and makes the new names durable. */
export function makeDirectories(files: Files, path: string): void {
  if (files.stat(path) !== undefined) return
  const parent = dirname(path)
  if (parent !== path) makeDirectories(files, parent)
  if (files.makeDirectory(path)) files.syncDirectory(parent)
}

const KINDS: Record<Exclude<FileStat['kind'], 'file'>, string> = {
  directory: 'a directory',
  link: 'a symbolic link, which a vault never follows',
  other: 'a pipe, a socket or a device',
}

/** Returns, for example, `a directory`. Returns undefined if `path` names a file or does not exist. */
export function describeOtherKind(files: Files, path: string): string | undefined {
  const kind = files.stat(path)?.kind ?? 'file'
  return kind === 'file' ? undefined : KINDS[kind]
}

/**
 * Returns undefined if the file does not exist. @throws CofferError `vault_damaged` if the path names something else
 * than a file, for example a directory. `storage_failed` for all other errors
 */
export function openPart(files: Files, path: string, opening: Opening): number | undefined {
  try {
    return files.open(path, opening)
  } catch (error) {
    const kind = describeOtherKind(files, path)
    if (kind === undefined) throw error
    throw damaged(`${path} is ${kind}. Put the file of the vault back in its place`)
  }
}

/**
 * Reads a whole file. Returns undefined if the file does not exist. @throws CofferError `vault_damaged` if the file has
 * more than `limit` bytes (then nothing is read), or if the path names something else than a file
 */
export function readWhole(files: Files, path: string, limit: number): Uint8Array | undefined {
  const file = openPart(files, path, 'read')
  if (file === undefined) return undefined
  try {
    const size = files.size(file)
    if (size > limit) throw damaged(`${path} is too large (${size} bytes)`)
    const bytes = new Uint8Array(size)
    return bytes.subarray(0, files.read(file, bytes, 0))
  } finally {
    files.close(file)
  }
}

export function removeQuietly(files: Files, path: string): void {
  try {
    files.remove(path)
  } catch {
    // The error is ignored. If the file is in a vault, a later command removes the file.
  }
}
