/**
 * Writes files that get their name only when they are complete. Therefore a crash, a kill or a full disk never leaves a
 * partial file with the final name.
 */
import { basename, dirname, join } from 'node:path'
import { CofferError, codeOf, conflict } from '../errors.js'
import { type Files, removeQuietly } from './files.js'

/** Error codes of file systems without hard links. */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EINVAL']
/** Error codes for a directory that this process is not allowed to open, or that the system cannot sync. */
const NO_DIRECTORY_SYNC = ['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EISDIR']
/**
 * If the final name has more than this many bytes, the temporary name does not contain the final name. File systems
 * permit names of 255 bytes.
 */
const LONGEST_NAME = 200

/**
 * A file of mode 0600 with a temporary name in the directory of its final name. If the process is killed, the temporary
 * file stays on the disk.
 */
export class WholeFile {
  readonly path: string
  size = 0
  readonly #files: Files
  readonly #target: string
  #file: number | undefined

  constructor(files: Files, target: string, nonce: string) {
    const name = basename(target)
    const short = Buffer.byteLength(name) > LONGEST_NAME ? 'coffer' : name
    this.path = join(dirname(target), `${short}.tmp-${nonce}`)
    this.#files = files
    this.#target = target
    this.#file = files.create(this.path)
  }

  append(bytes: Uint8Array): void {
    this.#files.write(this.#file!, bytes, this.size)
    this.size += bytes.length
  }

  sync(): void {
    this.#files.sync(this.#file!)
  }

  /**
   * Gives the file its final name. @throws CofferError `conflict` if another file has the final name, `storage_failed`
   */
  publish(): void {
    try {
      this.sync()
      this.#close()
      if (!this.#giveName()) throw refuseExisting(this.#target)
    } catch (error) {
      this.discard()
      throw error
    }
    syncName(this.#files, dirname(this.#target))
  }

  /** Gives the file its final name, and replaces any file with that name. Calls `isRenaming` before the rename. */
  replace(isRenaming: () => void = () => {}): void {
    try {
      this.sync()
      this.#close()
    } catch (error) {
      this.discard()
      throw error
    }
    isRenaming()
    this.#files.rename(this.path, this.#target)
  }

  discard(): void {
    try {
      this.#close()
    } finally {
      removeQuietly(this.#files, this.path)
    }
  }

  #close(): void {
    const file = this.#file
    this.#file = undefined
    if (file !== undefined) this.#files.close(file)
  }

  /**
   * Creates a hard link, which fails if the name exists. On a file system without hard links, first checks that the
   * name is free, and then renames the file.
   */
  #giveName(): boolean {
    try {
      const isNew = this.#files.link(this.path, this.#target)
      if (isNew) removeQuietly(this.#files, this.path)
      return isNew
    } catch (error) {
      if (!NO_LINKS.includes(codeOfCause(error))) throw error
    }
    if (this.#files.stat(this.#target) !== undefined) return false
    this.#files.rename(this.path, this.#target)
    return true
  }
}

export function writeNew(files: Files, target: string, bytes: Uint8Array, nonce: string): void {
  refuseIfThere(files, target)
  fill(files, target, bytes, nonce).publish()
}

export function writeOver(files: Files, target: string, bytes: Uint8Array, nonce: string): void {
  fill(files, target, bytes, nonce).replace()
  syncName(files, dirname(target))
}

/**
 * Replaces a file of a vault durably. Calls `isRenaming` before the rename. If the rename fails, it is unknown whether
 * the disk has the old file or the new file.
 */
export function replaceWhole(
  files: Files,
  directory: string,
  name: string,
  bytes: Uint8Array,
  nonce: string,
  isRenaming?: () => void,
): void {
  fill(files, `${directory}/${name}`, bytes, nonce).replace(isRenaming)
  files.syncDirectory(directory)
}

function fill(files: Files, target: string, bytes: Uint8Array, nonce: string): WholeFile {
  const file = new WholeFile(files, target, nonce)
  try {
    file.append(bytes)
    return file
  } catch (error) {
    file.discard()
    throw error
  }
}

/**
 * Call this function before long work whose result will be the file `target`. @throws CofferError `conflict` if the
 * file exists
 */
export function refuseIfThere(files: Files, target: string): void {
  if (files.stat(target) !== undefined) throw refuseExisting(target)
}

function refuseExisting(target: string): CofferError {
  return conflict(`${target} exists already. Give another file.`)
}

function syncName(files: Files, directory: string): void {
  try {
    files.syncDirectory(directory)
  } catch (error) {
    if (!NO_DIRECTORY_SYNC.includes(codeOfCause(error))) throw error
  }
}

function codeOfCause(error: unknown): string {
  return error instanceof CofferError ? codeOf(error.cause) : ''
}
