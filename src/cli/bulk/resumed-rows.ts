/**
 * Compares the results in a `--resume` file with the rows of the source. If a row was added or removed since the last
 * run, the number of results does not tell where to continue.
 */
import { type CofferError, usage } from '../../errors.js'

const LINES_BEFORE_RESULTS = 1
const RESULT = /^\{"line":(\d+),/

export interface ResumedRows {
  path: string
  /**
   * For each line of the `--resume` file after the first line: the number of the source line that the result is about.
   * NaN if the line is not a result.
   */
  lines: readonly number[]
  /** The number of rows in finished batches. If there are fewer results, the end of the `--resume` file was lost. */
  finished: number
}

export function readLineOfResult(text: string): number {
  return Number(RESULT.exec(text)?.[1] ?? Number.NaN)
}

/**
 * `at`: the number of rows before this row. `line`: the line of this row, or undefined at the end of the source.
 * @throws CofferError `usage` if the result at position `at` was lost or belongs to another row
 */
export function requireResult(resumed: ResumedRows, at: number, line: number | undefined): void {
  const { path, lines, finished } = resumed
  const recorded = lines[at]
  if (recorded === undefined) {
    if (lines.length < finished) throw describeLostEnd(resumed)
    return
  }
  if (recorded === line) return
  const place = at + LINES_BEFORE_RESULTS + 1
  if (line !== undefined && recorded > line) {
    const missing = JSON.stringify({ line, status: 'unknown' })
    throw describeChange(
      resumed,
      `${path} has no result for line ${line} of the rows. Insert this line as line ${place} of ${path}: ${missing}`,
    )
  }
  if (line === undefined && recorded > (lines[at - 1] ?? 0))
    throw usage(
      `The file has fewer rows than the ${lines.length} that were imported. ` +
        'If rows were removed from the file, put them back. If this is a different file, give another file as --resume.',
    )
  const what = Number.isNaN(recorded)
    ? 'is not a result'
    : `has a result for line ${recorded} of the rows, out of order`
  throw describeChange(resumed, `Line ${place} of ${path} ${what}. Remove that line`)
}

function describeChange({ path, lines }: ResumedRows, problem: string): CofferError {
  const last = lines.findLast((line) => !Number.isNaN(line)) ?? 0
  return usage(
    `${problem}\nThen run the same command again. But if you have changed rows up to line ${last} since the last run, ` +
      `undo these changes, and leave ${path} as it is. ` +
      'Do not give another file as --resume, because all rows would then be imported again.',
  )
}

function describeLostEnd({ path, lines, finished }: ResumedRows): CofferError {
  return usage(
    `${path} has ${lines.length} results, but ${finished} rows were imported, and perhaps the next batch too. ` +
      'The end of this file was lost. Find the last imported row with `coffer token list`. Copy the rows after it into a new file, and import that file with another ' +
      'file as --resume. If you only give another file as --resume, all rows are imported again.',
  )
}
