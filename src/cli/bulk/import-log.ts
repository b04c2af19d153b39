/** The file of an import: a line for each row. With `--resume` its first line names the run, and the other lines count. */
import { randomUUID } from 'node:crypto'
import { constants, type FileHandle, open } from 'node:fs/promises'
import { isObject, parseJsonOrNothing } from '../../domain/json/json.js'
import { CofferError, codeOf, usage } from '../../errors.js'
import type { RowResult } from '../../operations/token/import.js'
import { toJson } from '../output/display.js'
import type { Row } from './rows.js'

const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants
const NEW = O_RDWR | O_APPEND | O_CREAT | O_EXCL
/** A link would redirect the write, and a pipe would wait for a reader. */
const NEW_OR_OLD = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK
const RUN = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

export class ImportLog {
  /** Names the run to the vault. */
  readonly run: string
  /** Rows that earlier runs have done. */
  readonly rows: number
  readonly #file: FileHandle | undefined
  readonly #isResumable: boolean
  /** The first line, until it is written. */
  #head: string

  private constructor(run: string, rows: number, file?: FileHandle, isResumable = false, head = '') {
    this.run = run
    this.rows = rows
    this.#file = file
    this.#isResumable = isResumable
    this.#head = head
  }

  /** Whether an earlier run may have sent rows. */
  get isBegun(): boolean {
    return this.#isResumable && this.#head === ''
  }

  /** `about`: identifies a resumable run. @throws CofferError `usage`, `conflict`, `storage_failed` */
  static async open(path: string | undefined, about: string | undefined): Promise<ImportLog> {
    const run = randomUUID()
    if (path === undefined) return new ImportLog(run, 0)
    const file = await openOwn(path, about === undefined ? NEW : NEW_OR_OLD)
    if (about === undefined) return new ImportLog(run, 0, file)
    try {
      if (!(await file.stat()).isFile()) throw usage(`--resume: ${path} is not a file.`)
      const { head, lines, end, size } = await readLines(file)
      if (size === 0) return new ImportLog(run, 0, file, true, `${JSON.stringify({ run, about })}\n`)
      const before = parseJsonOrNothing(head)
      if (!isObject(before) || !RUN.test(String(before.run)))
        throw usage(`--resume: ${path} was not written by an import.`)
      if (before.about !== about)
        throw usage(
          `${path} is of another import. Give another file, or the command, vault and key that it began with.`,
        )
      // A kill may leave a part of a line.
      await file.truncate(end)
      return new ImportLog(String(before.run), lines - 1, file, true)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** Called before the first row is sent, so that the vault and this file name the same run. */
  async begin(): Promise<void> {
    if (this.#head === '') return
    await this.#file?.appendFile(this.#head)
    await this.#file?.datasync()
    this.#head = ''
  }

  /** Writes the results of rows, of which `done` are done: a run is resumed with the others. */
  async append(rows: readonly Row[], results: readonly RowResult[], done: number): Promise<void> {
    const kept = this.#isResumable ? results.slice(0, done) : results
    const lines = kept.map((result, at) => `${toJson({ line: rows[at]!.line, ...result })}\n`)
    await this.#file?.appendFile(lines.join(''))
    if (this.#isResumable) await this.#file?.datasync()
  }

  /** `isUndone`: no row was done, so that any other import may use the file. */
  async close(isUndone = false): Promise<void> {
    if (isUndone && this.#isResumable) await this.#file?.truncate()
    await this.#file?.close()
  }
}

/** The first line, the number of whole lines and their length in bytes. */
async function readLines(file: FileHandle) {
  const { size } = await file.stat()
  let [head, lines, end, last] = ['', 0, 0, 0]
  for await (const line of file.readLines({ start: 0, autoClose: false })) {
    if (lines++ === 0) head = line
    last = Buffer.byteLength(line) + 1
    end += last
  }
  return end > size ? { head, lines: lines - 1, end: end - last, size } : { head, lines, end, size }
}

/** A file that only its owner may read. @throws CofferError `conflict`, `storage_failed` */
export function openOwn(path: string, flags = NEW): Promise<FileHandle> {
  return open(path, flags, 0o600).catch((cause: unknown) => {
    if (codeOf(cause) === 'EEXIST')
      throw new CofferError('conflict', `${path} exists already. Give another file.`, { cause })
    throw new CofferError('storage_failed', `${path} cannot be written (${codeOf(cause)}).`, { cause })
  })
}
