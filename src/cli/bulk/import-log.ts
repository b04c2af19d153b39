/**
 * The log file of an import contains one line for each row, with the result of the row. If the file was given as
 * `--resume`, its first line identifies the run and the last batch that was sent.
 */
import { randomUUID } from 'node:crypto'
import { constants, type FileHandle, open, rm, writeFile } from 'node:fs/promises'
import { isObject, parseJsonOrNothing } from '../../domain/json/json.js'
import { CofferError, codeOf, usage } from '../../errors.js'
import type { RowResult } from '../../operations/token/import.js'
import { lockFile } from '../../vault/unlock.js'
import { toJson } from '../output/display.js'
import { type ResumedRows, readLineOfResult } from './resumed-rows.js'
import type { Row } from './rows.js'

const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants
const NEW = O_RDWR | O_APPEND | O_CREAT | O_EXCL
/** O_NOFOLLOW refuses a link, which would redirect the write. O_NONBLOCK prevents waiting at a pipe. */
const NEW_OR_OLD = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK
/** The first line is overwritten in place, so it has a fixed length. */
const HEAD_BYTES = 128
const RUN = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

export interface Refused {
  readonly line: number
  readonly reason: string
  /** Undefined for a row of an earlier run. */
  readonly lacksType?: boolean
}

export type ImportLog = Awaited<ReturnType<typeof openImportLog>>

/**
 * `about` identifies the run. Without `about`, the run cannot be resumed.
 * @throws CofferError `usage`, `conflict`, `unavailable`, `storage_failed`
 */
export async function openImportLog(
  path: string | undefined,
  about: string | undefined,
  { pid, notice }: { pid: number; notice(text: string): void },
) {
  const isResumable = about !== undefined
  const file = path === undefined ? undefined : await openOwn(path, isResumable ? NEW_OR_OLD : NEW)
  const lock = file && isResumable ? await lockFile(path!, pid, notice).catch(closeAfter(file)) : undefined
  const before = lock && (await readRun(file!, path!, about!).catch(closeAfter(file!, lock)))
  const nothing = {
    run: randomUUID(),
    resumed: undefined,
    pending: 0,
    refused: { count: 0, first: undefined },
  }
  const { run, resumed, pending, refused } = before ?? nothing
  let isBegun = before !== undefined
  let end = before?.end
  return {
    run,
    resumed,
    rows: resumed?.lines.length ?? 0,
    /**
     * An earlier run may have sent a batch without storing its results. Then this is the number of rows of the batch.
     * Otherwise this is 0.
     */
    pending,
    refused,
    isBegun,
    /** `count`: 0 for a vault, because the vault itself stores how many rows are done. */
    begin: async (first: number, count: number): Promise<void> => {
      if (!isResumable) return
      // Removes the results of an incomplete batch, because the batch is sent again.
      if (end !== undefined) await file?.truncate(end).catch(refuseWrite(path!))
      end = undefined
      if (isBegun && count === 0) return
      const head = JSON.stringify({ run, about, first, count }).padEnd(HEAD_BYTES - 1)
      await writeFile(path!, `${head}\n`, { flag: O_RDWR | O_NOFOLLOW }).catch(refuseWrite(path!))
      await file?.datasync().catch(refuseWrite(path!))
      isBegun = true
    },
    /** If the run can be resumed, only the first `done` results are written. */
    append: async (rows: readonly Row[], results: readonly RowResult[], done: number): Promise<void> => {
      if (file === undefined) return
      const kept = isResumable ? results.slice(0, done) : results
      const lines = kept.map((result, at) => `${toJson({ line: rows[at]!.line, ...result })}\n`)
      await file.appendFile(lines.join('')).catch(refuseWrite(path!))
      if (isResumable) await file.datasync().catch(refuseWrite(path!))
    },
    /** `isUndone`: no row was imported. Then the file is emptied or removed, so that another import can use it. */
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

/** Returns undefined for an empty file. @throws CofferError `usage` */
async function readRun(file: FileHandle, path: string, about: string) {
  const stat = await file.stat()
  if (!stat.isFile()) throw usage(`--resume: ${path} is not a file.`)
  if (stat.size === 0) return undefined
  const { buffer } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
  const before = parseJsonOrNothing(buffer.toString().trimEnd())
  if (!isObject(before) || !RUN.test(String(before.run)) || buffer.at(-1) !== 10)
    throw usage(`--resume: ${path} was not written by an import.`)
  if (before.about !== about)
    throw usage(
      `${path} belongs to another import. Give another file, or repeat the command of that import with the same vault and key.`,
    )
  const ends = [HEAD_BYTES]
  const lines: number[] = []
  /** The positions of refused rows, also in an incomplete batch. */
  const refusedAt: number[] = []
  let first: Refused | undefined
  for await (const line of file.readLines({ start: HEAD_BYTES, autoClose: false })) {
    const result = line.includes('"refused"') ? parseJsonOrNothing(line) : undefined
    if (isObject(result) && result.status === 'refused') {
      first ??= { line: Number(result.line), reason: String(result.reason) }
      refusedAt.push(ends.length)
    }
    lines.push(readLineOfResult(line))
    ends.push(ends.at(-1)! + Buffer.byteLength(line) + 1)
  }
  const whole = ends.findLastIndex((end) => end <= stat.size)
  // If a process was killed or the disk was full, some results of the last batch may be missing.
  const [begun, count] = [Number(before.first), Number(before.count)]
  const rows = whole < begun + count ? Math.min(whole, begun) : whole
  const refused = refusedAt.filter((at) => at <= rows).length
  const resumed: ResumedRows = { path, lines: lines.slice(0, rows), finished: begun }
  return {
    run: String(before.run),
    resumed,
    /** The length of the file without an incomplete batch. */
    end: ends[rows],
    pending: rows === begun ? count : 0,
    refused: { count: refused, first: refused > 0 ? first : undefined },
  }
}

const openOwn = (path: string, flags = NEW): Promise<FileHandle> =>
  open(path, flags, 0o600).catch(refuseWrite(path))

export const refuseWrite = (path: string) => (cause: unknown) => {
  if (codeOf(cause) === 'EEXIST')
    throw new CofferError('conflict', `${path} exists already. Give another file.`, { cause })
  throw new CofferError('storage_failed', `${path} cannot be written (${codeOf(cause)}).`, { cause })
}
