/** The file of an import: a line for each row. With `--resume` its first line names the run, and the other lines count. */
import { randomUUID } from 'node:crypto'
import { constants, type FileHandle, open, rm } from 'node:fs/promises'
import { isObject, parseJsonOrNothing } from '../../domain/json/json.js'
import { CofferError, codeOf, usage } from '../../errors.js'
import type { RowResult } from '../../operations/token/import.js'
import { lockFile } from '../../vault/unlock.js'
import { toJson } from '../output/display.js'
import type { Row } from './rows.js'

const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants
const NEW = O_RDWR | O_APPEND | O_CREAT | O_EXCL
/** A link would redirect the write, and a pipe would wait for a reader. */
const NEW_OR_OLD = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK
const RUN = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

export type ImportLog = Awaited<ReturnType<typeof openImportLog>>

/** `about`: identifies a run that one process at a time may resume. @throws CofferError `usage`, `conflict`, `unavailable`, `storage_failed` */
export async function openImportLog(path: string | undefined, about: string | undefined, pid: number) {
  const isResumable = about !== undefined
  const file = path === undefined ? undefined : await openOwn(path, isResumable ? NEW_OR_OLD : NEW)
  const lock = file && isResumable ? await lockFile(path!, pid).catch(closeAfter(file)) : undefined
  const before = lock && (await readRun(file!, path!, about!).catch(closeAfter(file!, lock)))
  const { run, rows } = before ?? { run: randomUUID(), rows: undefined }
  /** The first line, until it is written. */
  let head = isResumable && rows === undefined ? `${JSON.stringify({ run, about })}\n` : ''
  return {
    /** Names the run to the vault. */
    run,
    /** Rows that earlier runs have done. */
    rows: rows ?? 0,
    /** Whether an earlier run may have sent rows. */
    isBegun: rows !== undefined,
    /** Called before the first row is sent, so that the vault and this file name the same run. */
    begin: async (): Promise<void> => {
      if (head === '') return
      await file?.appendFile(head).catch(refuseWrite(path!))
      await file?.datasync().catch(refuseWrite(path!))
      head = ''
    },
    /** Writes the results of rows, of which `done` are done: a run is resumed with the others. */
    append: async (rows: readonly Row[], results: readonly RowResult[], done: number): Promise<void> => {
      if (file === undefined) return
      const kept = isResumable ? results.slice(0, done) : results
      const lines = kept.map((result, at) => `${toJson({ line: rows[at]!.line, ...result })}\n`)
      await file.appendFile(lines.join('')).catch(refuseWrite(path!))
      if (isResumable) await file.datasync().catch(refuseWrite(path!))
    },
    /** `isUndone`: no row was done, so that any other import may use the file. A new file without results is removed. */
    close: async (isUndone = false): Promise<void> => {
      if (isUndone && isResumable) await file?.truncate()
      const isEmpty = isUndone && !isResumable && (await file?.stat())?.size === 0
      await file?.close()
      if (isEmpty) await rm(path!)
      lock?.release()
    },
  }
}

const closeAfter = (file: FileHandle, lock?: { release(): void }) => async (error: unknown) => {
  await file.close()
  lock?.release()
  throw error
}

/** The run that the file is of; undefined for a new file. @throws CofferError `usage` */
async function readRun(file: FileHandle, path: string, about: string) {
  if (!(await file.stat()).isFile()) throw usage(`--resume: ${path} is not a file.`)
  const { head, lines, end, size } = await readLines(file)
  if (size === 0) return undefined
  const before = parseJsonOrNothing(head)
  if (!isObject(before) || !RUN.test(String(before.run)))
    throw usage(`--resume: ${path} was not written by an import.`)
  if (before.about !== about)
    throw usage(
      `${path} is of another import. Give another file, or the command, vault and key that it began with.`,
    )
  // A kill may leave a part of a line.
  await file.truncate(end)
  return { run: String(before.run), rows: lines - 1 }
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
export const openOwn = (path: string, flags = NEW): Promise<FileHandle> =>
  open(path, flags, 0o600).catch(refuseWrite(path))

export const refuseWrite = (path: string) => (cause: unknown) => {
  if (codeOf(cause) === 'EEXIST')
    throw new CofferError('conflict', `${path} exists already. Give another file.`, { cause })
  throw new CofferError('storage_failed', `${path} cannot be written (${codeOf(cause)}).`, { cause })
}
