import { isObject } from '../../domain/json/json.js'
import { CofferError } from '../../errors.js'
import { type RowResult, refuse } from '../../operations/token/import.js'
import type { Task } from '../task.js'
import type { Row } from './rows.js'

/** `run`: names the run. `stops`: whether the first row that is refused is the last. */
type SendOptions = { run: string; stops: boolean; isDryRun: boolean }

/** `first`: the number of rows before. Resolves to results in order; fewer if the last ended it, none if some row is refused. */
export type Send = (rows: readonly Row[], first: number) => Promise<readonly RowResult[]>

/** The vault stores the run in the same unit of work: a batch that is sent again is not repeated. */
export function sendToVault({ ask }: Task, { run, stops, isDryRun }: SendOptions): Send {
  return async (rows, first) => {
    // A row that cannot be read is refused as any other that is no object.
    const values = rows.map(({ value, fault }) => (fault === undefined ? value : null))
    const named = isDryRun ? { rehearses: true } : { run, first }
    const { results } = (await ask({ rows: values, stops, ...named })) as { results: RowResult[] }
    return results.map((result, at) => {
      const { fault } = rows[at]!
      return fault === undefined ? result : refuse({ message: fault })
    })
  }
}

/** Codes of a batch in which some row is refused. */
const OF_ROWS: readonly string[] = ['validation', 'forbidden', 'conflict', 'too_large', 'unprocessable']

/** A batch is done whole or refused whole. Keys are by rows, so a batch that is sent again as it was is not repeated. */
export function sendToServer({ ask }: Task, { run }: SendOptions): Send {
  return async (rows, first) => {
    const [only] = rows
    if (rows.length === 1 && only?.fault !== undefined) return [refuse({ message: only.fault })]
    try {
      if (!rows.every(isRequest))
        throw new CofferError('validation', 'A row must be a JSON object with type and data.')
      const key = `${run}.${first}.${rows.length}`
      const payload = rows.map(({ value }) => value)
      return readTokens(await ask({ payload }, 'token tokenize', key), rows.length)
    } catch (error) {
      const isOfRows = error instanceof CofferError && OF_ROWS.includes(error.code)
      // The server still performs this batch, for a run that was killed.
      if (!isOfRows || error.retryAfterSeconds !== undefined) throw error
      return rows.length === 1 ? [refuseOnly(error)] : []
    }
  }
}

/** Anything else than an object with type and data would be a document with values to tokenize. */
function isRequest({ value, fault }: Row): boolean {
  return fault === undefined && isObject(value) && 'type' in value && 'data' in value
}

/** The error of a batch of one row, without the place of the row. */
function refuseOnly({ message, errors }: CofferError): RowResult {
  const bare = (path: string) => path.replace(/^\[0\]\.?/, '')
  const own = errors && Object.fromEntries(Object.entries(errors).map(([path, texts]) => [bare(path), texts]))
  return refuse({ message: bare(message), errors: own })
}

function readTokens(tokens: unknown, count: number): RowResult[] {
  const areTokens = Array.isArray(tokens) && tokens.every((each) => typeof each?.id === 'string')
  if (!areTokens || tokens.length !== count)
    throw new CofferError('unavailable', 'The server answered something else than the tokens of the rows.')
  return tokens.map(({ id, _extras }) => ({
    status: _extras?.deduplicated === true ? 'deduplicated' : 'created',
    id,
  }))
}
