/** The port of files over node:fs: modes, links and errors of the operating system. */
import * as fs from 'node:fs'
import { userInfo } from 'node:os'
import { CofferError } from '../errors.js'
import { codeOf, type FileStat, type Files, type Opening, storageError } from './files.js'

function attempt<T>(action: string, path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw storageError(action, path, error)
  }
}

/** The result of `work`, or `otherwise` when it fails with `code`. */
function attemptUnless<T, U>(code: string, otherwise: U, action: string, path: string, work: () => T): T | U {
  try {
    return work()
  } catch (error) {
    if (codeOf(error) === code) return otherwise
    throw storageError(action, path, error)
  }
}

const FLAGS: Record<Opening, number> = {
  read: fs.constants.O_RDONLY,
  write: fs.constants.O_RDWR,
  create: fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL,
}

/** Remembers the path of each descriptor, for messages. */
class NodeFiles implements Files {
  readonly user = userInfo().uid < 0 ? undefined : userInfo().uid
  readonly #paths = new Map<number, string>()

  open(path: string, opening: Opening): number | undefined {
    const file = attemptUnless('ENOENT', undefined, opening === 'create' ? 'create' : 'open', path, () =>
      // O_NONBLOCK, so that a pipe in the place of a file is refused instead of waited for.
      fs.openSync(path, FLAGS[opening] | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK, 0o600),
    )
    if (file === undefined) return undefined
    if (!fs.fstatSync(file).isFile()) {
      fs.closeSync(file)
      throw new CofferError('storage_failed', `Cannot open ${path}: it is no file. Remove it.`)
    }
    this.#paths.set(file, path)
    // A wider umask cannot add bits to 0600, a narrower one may have taken some away.
    if (opening === 'create') attempt('set the mode of', path, () => fs.fchmodSync(file, 0o600))
    return file
  }

  close(file: number): void {
    const path = this.#path(file)
    this.#paths.delete(file)
    attempt('close', path, () => fs.closeSync(file))
  }

  read(file: number, target: Uint8Array, position: number): number {
    return attempt('read', this.#path(file), () => {
      let done = 0
      while (done < target.length) {
        const count = fs.readSync(file, target, done, target.length - done, position + done)
        if (count === 0) break
        done += count
      }
      return done
    })
  }

  write(file: number, bytes: Uint8Array, position: number): void {
    attempt('write', this.#path(file), () => {
      for (let done = 0; done < bytes.length; ) {
        done += fs.writeSync(file, bytes, done, bytes.length - done, position + done)
      }
    })
  }

  size(file: number): number {
    return attempt('examine', this.#path(file), () => fs.fstatSync(file).size)
  }

  truncate(file: number, length: number): void {
    attempt('cut', this.#path(file), () => fs.ftruncateSync(file, length))
  }

  syncData(file: number): void {
    attempt('sync', this.#path(file), () => fs.fdatasyncSync(file))
  }

  sync(file: number): void {
    attempt('sync', this.#path(file), () => fs.fsyncSync(file))
  }

  syncDirectory(path: string): void {
    attempt('sync', path, () => {
      const file = fs.openSync(path, fs.constants.O_RDONLY)
      try {
        fs.fsyncSync(file)
      } finally {
        fs.closeSync(file)
      }
    })
  }

  rename(from: string, to: string): void {
    attempt('replace', to, () => fs.renameSync(from, to))
  }

  link(from: string, to: string): boolean {
    return attemptUnless('EEXIST', false, 'create', to, () => {
      fs.linkSync(from, to)
      return true
    })
  }

  remove(path: string): boolean {
    return attemptUnless('ENOENT', false, 'remove', path, () => {
      fs.unlinkSync(path)
      return true
    })
  }

  stat(path: string): FileStat | undefined {
    const stats = attemptUnless('ENOENT', undefined, 'examine', path, () => fs.lstatSync(path))
    if (stats === undefined) return undefined
    return { kind: kindOf(stats), mode: stats.mode & 0o7777, owner: stats.uid, size: stats.size }
  }

  list(path: string): string[] {
    return attempt('list', path, () => fs.readdirSync(path))
  }

  free(path: string): number {
    const { bavail, bsize } = attempt('examine', path, () => fs.statfsSync(path))
    return bavail * bsize
  }

  makeDirectory(path: string): boolean {
    return attemptUnless('EEXIST', false, 'create', path, () => {
      fs.mkdirSync(path, { mode: 0o700 })
      return true
    })
  }

  #path(file: number): string {
    return this.#paths.get(file) ?? `descriptor ${file}`
  }
}

function kindOf(stats: fs.Stats): FileStat['kind'] {
  if (stats.isSymbolicLink()) return 'link'
  if (stats.isFile()) return 'file'
  return stats.isDirectory() ? 'directory' : 'other'
}

export function nodeFiles(): Files {
  return new NodeFiles()
}
