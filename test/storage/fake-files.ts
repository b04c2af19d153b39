/**
 * An in-memory disk that loses unsynced data in a crash, and that stops or fails at a chosen step. Tests use this disk
 * in place of `nodeFiles` to crash a process or a machine at every step.
 */
import { CofferError } from '../../src/errors.js'
import { type FileStat, type Files, storageError } from '../../src/storage/files.js'

/**
 * The error that the disk throws at the point of the crash. The code under test must not catch this error and continue.
 */
export class Stopped extends Error {}

/** The bytes of a file are replaced and never changed in place, so two files can share one buffer. */
interface File {
  bytes: Buffer
  /** The bytes that are left after a power cut. */
  safe: Buffer
  mode: number
}

interface Directory {
  names: Map<string, File>
  safe: Map<string, File>
  /** Names that a rename has set, and that are not synced yet. */
  renamed: Set<string>
}

/**
 * The fault that the disk has at step `at`. If the code is `stop`, the process ends. Another code is the error that the
 * system reports.
 */
export type Fault = { at: number; code: 'stop' | 'EIO' | 'ENOSPC'; isTorn?: boolean }

const SECTOR = 512

export class FakeFiles implements Files {
  readonly user = 1000
  /** Number of steps that the disk has performed. Each change of the disk and each sync is one step. */
  steps = 0
  /** Number of reads that the disk has performed. */
  reads = 0
  fault: Fault | undefined
  /** The action that the fault interrupted, if there was one. */
  failed: string | undefined
  #directories = new Map<string, Directory>([['/', emptyDirectory()]])
  readonly #open = new Map<number, { path: string; file: File }>()
  /**
   * Errors of concurrent syncs that the disk has not reported yet. The system reports each error to every open
   * descriptor of the file.
   */
  readonly #owed = new Map<File, unknown>()
  #next = 3

  /**
   * Returns the disk after a crash. After a crash of the process, unsynced data is still there, and a later power cut
   * can still remove it. After a power cut, only synced data is left. With `keepsRenames`, an unsynced rename survives
   * the power cut, but a name that was created before the rename does not. `keepsBytes` returns true for a file whose
   * unsynced bytes survive.
   */
  afterCrash(isPowerCut: boolean, keepsRenames = false, keepsBytes = (_path: string) => false): FakeFiles {
    const next = new FakeFiles()
    for (const [path, directory] of this.#directories) {
      const copies = new Map<File, File>()
      const copy = (name: string, file: File): File => {
        const isKept = !isPowerCut || keepsBytes(`${path}/${name}`)
        const bytes = isKept ? file.bytes : file.safe
        const copied = copies.get(file) ?? { bytes, safe: isPowerCut ? bytes : file.safe, mode: file.mode }
        copies.set(file, copied)
        return copied
      }
      const copyAll = (files: Map<string, File>) =>
        new Map([...files].map(([name, file]) => [name, copy(name, file)]))
      const kept = new Map(isPowerCut ? directory.safe : directory.names)
      if (keepsRenames) for (const name of directory.renamed) kept.set(name, directory.names.get(name)!)
      const names = copyAll(kept)
      const safe = isPowerCut ? new Map(names) : copyAll(directory.safe)
      next.#directories.set(path, { names, safe, renamed: new Set(isPowerCut ? [] : directory.renamed) })
    }
    return next
  }

  /** Returns the paths of the descriptors that are still open. */
  get openFiles(): string[] {
    return [...this.#open.values()].map(({ path }) => path)
  }

  /** Returns the bytes of every file, by path. */
  contents(): Map<string, Buffer> {
    const all = new Map<string, Buffer>()
    for (const [path, { names }] of this.#directories)
      for (const [name, { bytes }] of names) all.set(`${path}/${name}`, bytes)
    return all
  }

  /** Sets the bytes of a file without the engine. If `bytes` is undefined, removes the file. */
  plant(path: string, bytes: Buffer | undefined): void {
    const { names, safe } = this.#parent(path)
    const copy = Buffer.from(bytes ?? [])
    const file = { bytes: copy, safe: copy, mode: 0o600 }
    for (const map of [names, safe]) {
      if (bytes === undefined) map.delete(nameOf(path))
      else map.set(nameOf(path), file)
    }
  }

  create(path: string): number {
    const { names } = this.#parent(path)
    this.#step('create', path)
    if (names.has(nameOf(path))) throw storageError('create', path, { code: 'EEXIST' })
    names.set(nameOf(path), { bytes: Buffer.alloc(0), safe: Buffer.alloc(0), mode: 0o600 })
    return this.open(path)!
  }

  open(path: string): number | undefined {
    const file = this.#parent(path).names.get(nameOf(path))
    if (file === undefined) return undefined
    this.#open.set(this.#next, { path, file })
    return this.#next++
  }

  close(file: number): void {
    if (!this.#open.delete(file)) throw new CofferError('internal', 'A file was closed twice.')
  }

  read(file: number, target: Uint8Array, position: number): number {
    this.reads++
    const { bytes } = this.#file(file)
    const piece = bytes.subarray(position, position + target.length)
    target.set(piece)
    return piece.length
  }

  write(file: number, bytes: Uint8Array, position: number): void {
    const held = this.#file(file)
    const fault = this.fault
    // A disk writes one sector completely or not at all. Therefore a process can crash only before or after a write of
    // one sector.
    const isOneSector = position === 0 && bytes.length <= SECTOR
    const isTorn = fault?.isTorn === true && this.steps + 1 === fault.at && !isOneSector
    if (isTorn) put(held, bytes.subarray(0, Math.floor(bytes.length / 2)), position)
    this.#step('write', this.#open.get(file)!.path)
    put(held, bytes, position)
  }

  size(file: number): number {
    return this.#file(file).bytes.length
  }

  truncate(file: number, length: number): void {
    this.#step('cut', this.#open.get(file)!.path)
    const held = this.#file(file)
    held.bytes = held.bytes.subarray(0, length)
  }

  async syncDataBeside(path: string): Promise<void> {
    const file = this.open(path)
    if (file === undefined) throw storageError('sync', path, new Error('ENOENT'))
    try {
      this.syncData(file)
    } catch (error) {
      this.#owed.set(this.#file(file), error)
      throw error
    } finally {
      this.close(file)
    }
  }

  syncData(file: number): void {
    this.#step('sync', this.#open.get(file)!.path)
    const held = this.#file(file)
    const owed = this.#owed.get(held)
    if (this.#owed.delete(held)) throw owed
    held.safe = held.bytes
  }

  sync = this.syncData

  syncDirectory(path: string): void {
    this.#step('sync', path)
    const directory = this.#directories.get(resolve(path))
    if (directory === undefined) throw storageError('sync', path, { code: 'ENOENT' })
    directory.safe = new Map(directory.names)
    directory.renamed.clear()
  }

  rename(from: string, to: string): void {
    this.#step('replace', to)
    const source = this.#parent(from)
    const file = source.names.get(nameOf(from))
    if (file === undefined) throw storageError('replace', to, { code: 'ENOENT' })
    source.names.delete(nameOf(from))
    this.#parent(to).names.set(nameOf(to), file)
    this.#parent(to).renamed.add(nameOf(to))
  }

  link(from: string, to: string): boolean {
    this.#step('create', to)
    const file = this.#parent(from).names.get(nameOf(from))
    if (file === undefined) throw storageError('create', to, { code: 'ENOENT' })
    const { names } = this.#parent(to)
    if (names.has(nameOf(to))) return false
    names.set(nameOf(to), file)
    return true
  }

  remove(path: string): boolean {
    this.#step('remove', path)
    this.#parent(path).renamed.delete(nameOf(path))
    return this.#parent(path).names.delete(nameOf(path))
  }

  stat(path: string): FileStat | undefined {
    const shape = { owner: this.user, size: 0 }
    if (this.#directories.has(resolve(path))) return { ...shape, kind: 'directory', mode: 0o700 }
    const file = this.#directories.get(resolve(`${path}/..`))?.names.get(nameOf(path))
    return file === undefined
      ? undefined
      : { ...shape, kind: 'file', mode: file.mode, size: file.bytes.length }
  }

  list(path: string): string[] {
    const directory = this.#directories.get(resolve(path))
    if (directory === undefined) throw storageError('list', path, { code: 'ENOENT' })
    return [...directory.names.keys()]
  }

  makeDirectory(path: string): boolean {
    if (this.#directories.has(resolve(path))) return false
    this.#step('create', path)
    // Directories are created before there is any data to lose, so the test treats them as synced.
    this.#directories.set(resolve(path), emptyDirectory())
    return true
  }

  #step(action: string, path: string): void {
    this.steps++
    const { fault } = this
    if (fault === undefined || this.steps < fault.at) return
    // After the code `stop`, every further step fails. With another code, the error of the system occurs only once.
    if (fault.code === 'stop') throw new Stopped(`stopped: ${action} ${path}`)
    if (this.steps !== fault.at) return
    this.failed = action
    throw storageError(action, path, { code: fault.code })
  }

  #file(file: number): File {
    const open = this.#open.get(file)
    if (open === undefined) throw new CofferError('internal', 'A closed file was used.')
    return open.file
  }

  #parent(path: string): Directory {
    const directory = this.#directories.get(resolve(`${path}/..`))
    if (directory === undefined) throw storageError('open', path, { code: 'ENOENT' })
    return directory
  }
}

function emptyDirectory(): Directory {
  return { names: new Map(), safe: new Map(), renamed: new Set() }
}

function put(file: File, bytes: Uint8Array, position: number): void {
  const gap = Buffer.alloc(Math.max(0, position - file.bytes.length))
  const [before, after] = [file.bytes.subarray(0, position), file.bytes.subarray(position + bytes.length)]
  file.bytes = Buffer.concat([before, gap, bytes, after])
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** Returns the path without `..`. */
function resolve(path: string): string {
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '') parts.push(part)
  }
  return `/${parts.join('/')}`
}
