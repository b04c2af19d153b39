/** The files of an import: a line for each row, and the position from which an interrupted run goes on. */
import { randomUUID } from 'node:crypto'
import { constants, type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { isObject, parseJsonOrNothing } from '../../domain/json/json.js'
import { CofferError, usage } from '../../errors.js'
import type { RowResult } from '../../operations/token/import.js'
import { toJson } from '../output/display.js'
import type { Row } from './rows.js'

/** The source, target and settings of a run, by name. */
export type About = Readonly<Record<string, unknown>>

/** How far a run came. */
export interface Position {
  /** Names the run to the vault. */
  run: string
  /** Rows that are done. */
  rows: number
  /** Length of the results in bytes. */
  results: number
  /** Another run has another. */
  about: About
  isComplete: boolean
}

export type ImportLog = Awaited<ReturnType<typeof openImportLog>>

/**
 * `results` and `resume` are absolute paths.
 * @throws CofferError `usage` for the file of another run, `conflict` for results that exist, `storage_failed`
 */
export async function openImportLog(
  { results, resume }: Record<'results' | 'resume', string | undefined>,
  about: About,
) {
  const fresh: Position = { run: randomUUID(), rows: 0, results: 0, about, isComplete: false }
  const before = resume === undefined ? undefined : await readPosition(resume)
  if (before !== undefined) refuseOther(`${resume}`, before, about)
  const start = before ?? fresh
  // Written before the first row is, so that the vault and this file name the same run.
  if (resume !== undefined && before === undefined) await writePosition(resume, start)
  const file = results === undefined ? undefined : await openResults(results, before)
  let position = start
  return {
    /** When the run began, or where it was cut short. */
    start,
    /** Writes the results of rows, and then that the first `done` of these are done. */
    take: async (rows: readonly Row[], results: readonly RowResult[], done: number) => {
      const lines = results.map((result, at) => `${toJson({ line: rows[at]!.line, ...result })}\n`)
      await file?.appendFile(lines.join(''))
      if (resume === undefined) return
      await file?.datasync()
      const bytes = file === undefined ? 0 : Buffer.byteLength(lines.slice(0, done).join(''))
      const reached = { rows: position.rows + done, results: position.results + bytes }
      position = { ...position, ...reached, isComplete: false }
      await writePosition(resume, position)
    },
    end: async (isComplete: boolean) => {
      await file?.close()
      if (isComplete && resume !== undefined) await writePosition(resume, { ...position, isComplete })
    },
  }
}

/** @throws CofferError `usage` if the position is of another run than `about` */
function refuseOther(path: string, { about: then, rows }: Position, about: About): void {
  if (!isObject(then))
    throw usage(
      `${path} is of an earlier version, which did not note the vault. Import the rows after the first ${rows} with another file.`,
    )
  const isOther = (name: string) => JSON.stringify(then[name]) !== JSON.stringify(about[name])
  const other = [...new Set([...Object.keys(about), ...Object.keys(then)])].filter(isOther)
  if (other.length === 0) return
  throw usage(
    `${path} is of another import: not the same ${other.join(', ')}. Give another file, or the same command as then.`,
  )
}

const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants
/** A link would redirect the write, and a pipe would wait for a reader. */
const TO_GO_ON = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK

/** Cuts off lines after the last position: they are written again. */
async function openResults(path: string, before: Position | undefined): Promise<FileHandle> {
  let file: FileHandle | undefined
  try {
    file = await open(path, before === undefined ? 'wx' : TO_GO_ON, 0o600)
    if (before === undefined) return file
    const stat = await file.stat()
    if (!stat.isFile()) throw usage(`--results: ${path} is not a file.`)
    if (stat.size < before.results) throw usage(`${path} is not whole: it has lost lines.`)
    await file.truncate(before.results)
    return file
  } catch (cause) {
    await file?.close()
    if (cause instanceof CofferError) throw cause
    const { code } = cause as { code?: unknown }
    if (code === 'ELOOP')
      throw usage(`--results: ${path} is a symbolic link. Give the file itself.`, { cause })
    if (code === 'EEXIST')
      throw new CofferError('conflict', `${path} exists already. Give another file for --results.`, { cause })
    throw new CofferError('storage_failed', `The results cannot be written to ${path}.`, { cause })
  }
}

const RUN = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

async function readPosition(path: string): Promise<Position | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    if ((cause as { code?: unknown }).code === 'ENOENT') return undefined
    throw usage(`--resume: ${path} cannot be read.`, { cause })
  }
  const position = text.length > 64 * 1024 ? undefined : parseJsonOrNothing(text)
  const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0
  const areCounts = isObject(position) && isCount(position.rows) && isCount(position.results)
  if (areCounts && RUN.test(`${position.run}`)) return position as unknown as Position
  throw usage(`--resume: ${path} was not written by an import.`)
}

/** Renamed into place, so that a kill leaves the position before or after. */
async function writePosition(path: string, position: Position): Promise<void> {
  try {
    // Removes the file of a killed run, and a link, which would redirect the write.
    await rm(`${path}.tmp`, { force: true })
    await writeFile(`${path}.tmp`, `${JSON.stringify(position)}\n`, { mode: 0o600, flag: 'wx', flush: true })
    await rename(`${path}.tmp`, path)
  } catch (cause) {
    throw new CofferError('storage_failed', `How far it came cannot be written to ${path}.`, {
      cause,
    })
  }
}
