/** Files that get their name only when they are whole: a crash, a kill or a full disk leaves no part of one under it. */
import { basename, dirname, join } from 'node:path'
import { CofferError, codeOf, conflict } from '../errors.js'
import { type Files, removeQuietly } from './files.js'

/** Codes of a file system that has no hard links. */
const NO_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK', 'EINVAL']
/** Codes of a directory that may not be opened, or of a system that syncs none. */
const NO_DIRECTORY_SYNC = ['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EISDIR']
/** Of 255 bytes that a name may have, as many as leave room for the ending. */
const LONGEST_NAME = 200

/** A file of mode 0600 under a temporary name, beside the name that it gets. A kill leaves it under the temporary one. */
export class WholeFile {
  /** Its temporary path. */
  readonly path: string
  /** How many bytes were appended. */
  size = 0
  readonly #files: Files
  readonly #target: string
  #file: number | undefined

  /** `nonce`: tells it from other attempts. @throws CofferError `storage_failed` */
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

  /** Gives it its name, which no file has. @throws CofferError `conflict` if a file has it, `storage_failed` */
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

  /** Gives it its name, in the place of a file that has it. `isRenaming` is called before: until then nothing has changed. */
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

  /** Removes it, unless it has its name already. */
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

  /** By a hard link, which fails if there is a file; where there are no links, by a rename after a look. */
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

/** Writes a new file. @throws CofferError `conflict` if there is one, `storage_failed` */
export function writeNew(files: Files, target: string, bytes: Uint8Array, nonce: string): void {
  refuseIfThere(files, target)
  fill(files, target, bytes, nonce).publish()
}

/** Replaces a file, or makes it. @throws CofferError `storage_failed` */
export function writeOver(files: Files, target: string, bytes: Uint8Array, nonce: string): void {
  fill(files, target, bytes, nonce).replace()
  syncName(files, dirname(target))
}

/** Replaces a file of a vault durably. `isRenaming` is called when it is no longer certain that the old one stays. */
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

/** Before work that would be in vain. @throws CofferError `conflict` */
export function refuseIfThere(files: Files, target: string): void {
  if (files.stat(target) !== undefined) throw refuseExisting(target)
}

function refuseExisting(target: string): CofferError {
  return conflict(`${target} exists already. Give another file.`)
}

/** Makes a name in a directory of the user durable, as far as the directory lets us. */
function syncName(files: Files, directory: string): void {
  try {
    files.syncDirectory(directory)
  } catch (error) {
    if (!NO_DIRECTORY_SYNC.includes(codeOfCause(error))) throw error
  }
}

/** The code of the system's error that a {@link Files} turned into its own. */
function codeOfCause(error: unknown): string {
  return error instanceof CofferError ? codeOf(error.cause) : ''
}
