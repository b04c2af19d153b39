/** What an import leaves beside the vault: a line for each row, and how far it came, for a run that is cut short. */
import { randomUUID } from 'node:crypto'
import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { isObject, parseJsonOrNothing } from '../../domain/json/json.js'
import { CofferError, usage } from '../../errors.js'
import type { RowResult } from '../../operations/token/import.js'
import { toJson } from '../output/display.js'
import type { Row } from './rows.js'

/** How far a run came. */
export interface Position {
  /** Names the run to the vault. */
  run: string
  /** Rows that are done. */
  rows: number
  /** Length of the results in bytes. */
  results: number
  /** What the run reads and where it writes: another run has another. */
  about: string
  isComplete: boolean
}

export interface ImportLog {
  /** When the run began, or where it was cut short. */
  readonly start: Position
  /** Writes the results of rows, and then that the first `done` of these are done. */
  take(rows: readonly Row[], results: readonly RowResult[], done: number): Promise<void>
  /** Closes the files. */
  end(isComplete: boolean): Promise<void>
}

export interface LogFiles {
  /** Absolute paths. */
  results: string | undefined
  resume: string | undefined
}

/** @throws CofferError `usage` for the file of another run, `conflict` for results that exist, `storage_failed` */
export async function openImportLog({ results, resume }: LogFiles, about: string): Promise<ImportLog> {
  const fresh: Position = { run: randomUUID(), rows: 0, results: 0, about, isComplete: false }
  const before = resume === undefined ? undefined : await readPosition(resume)
  if (before !== undefined && before.about !== about)
    throw usage(`${resume} is of another import. Give another file, or the same command as then.`)
  const start = before ?? fresh
  // Written before the first row is, so that the vault and this file name the same run.
  if (resume !== undefined && before === undefined) await writePosition(resume, start)
  const file = results === undefined ? undefined : await openResults(results, before)
  let position = start
  return {
    start,
    take: async (rows, results, done) => {
      const lines = results.map((result, at) => `${toJson({ line: rows[at]!.line, ...result })}\n`)
      await file?.appendFile(lines.join(''))
      if (resume === undefined) return
      await file?.datasync()
      const bytes = file === undefined ? 0 : Buffer.byteLength(lines.slice(0, done).join(''))
      position = { ...position, rows: position.rows + done, results: position.results + bytes }
      await writePosition(resume, position)
    },
    end: async (isComplete) => {
      await file?.close()
      if (isComplete && resume !== undefined) await writePosition(resume, { ...position, isComplete })
    },
  }
}

/** What was written after the last position is written again. */
async function openResults(path: string, before: Position | undefined): Promise<FileHandle> {
  try {
    const file = await open(path, before === undefined ? 'wx' : 'a', 0o600)
    if (before === undefined) return file
    const { size } = await file.stat()
    if (size < before.results) throw usage(`${path} is not whole: it has lost lines.`)
    await file.truncate(before.results)
    return file
  } catch (cause) {
    if (cause instanceof CofferError) throw cause
    if ((cause as { code?: unknown }).code === 'EEXIST')
      throw new CofferError('conflict', `${path} exists already. Give another file for --results.`, { cause })
    throw new CofferError('storage_failed', `The results cannot be written to ${path}.`, { cause })
  }
}

async function readPosition(path: string): Promise<Position | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    if ((cause as { code?: unknown }).code === 'ENOENT') return undefined
    throw usage(`--resume: ${path} cannot be read.`, { cause })
  }
  const position = text.length > 64 * 1024 ? undefined : parseJsonOrNothing(text)
  if (isObject(position) && typeof position.run === 'string' && Number.isSafeInteger(position.rows))
    return position as unknown as Position
  throw usage(`--resume: ${path} was not written by an import.`)
}

/** Renamed into place, so that a kill leaves the position before or after. */
async function writePosition(path: string, position: Position): Promise<void> {
  try {
    // Of a killed run; or a link, which would redirect the write.
    await rm(`${path}.tmp`, { force: true })
    await writeFile(`${path}.tmp`, `${JSON.stringify(position)}\n`, { mode: 0o600, flag: 'wx', flush: true })
    await rename(`${path}.tmp`, path)
  } catch (cause) {
    throw new CofferError('storage_failed', `How far the import came cannot be written to ${path}.`, {
      cause,
    })
  }
}
