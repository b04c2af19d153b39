import { isObject } from '../../domain/json/json.js'
import { CofferError } from '../../errors.js'
import { type RowResult, refuse } from '../../operations/token/import.js'
import type { Task } from '../task.js'
import type { Row } from './rows.js'

/** `run`: the id of the run. If `stops` is true, the first refused row ends the run. */
type SendOptions = { run: string; stops: boolean; isDryRun: boolean }

/**
 * `first`: the number of rows before `rows`. Resolves to the results in order. If a refused row ended the run, its
 * result is the last. An empty list means that a row of the batch was refused, and the caller has to split the batch to
 * find this row.
 */
export type Send = (rows: readonly Row[], first: number) => Promise<readonly RowResult[]>

/**
 * The vault commits each batch together with the progress of the run, so a batch that is sent twice is imported once.
 */
export function sendToVault({ ask }: Task, { run, stops, isDryRun }: SendOptions): Send {
  return async (rows, first) => {
    // Null stands for a row that cannot be read. The vault refuses null.
    const values = rows.map(({ value, fault }) => (fault === undefined ? value : null))
    const named = isDryRun ? { rehearses: true } : { run, first }
    const { results } = (await ask({ rows: values, stops, ...named })) as { results: RowResult[] }
    return results.map((result, at) => {
      const { fault } = rows[at]!
      return fault === undefined ? result : refuse({ message: fault })
    })
  }
}

/** The codes of errors that a row of the batch can cause. */
const OF_ROWS: readonly string[] = ['validation', 'forbidden', 'conflict', 'too_large', 'unprocessable']

/**
 * A server performs or refuses a whole batch. The idempotency key consists of run, position and size, so a batch that
 * is sent twice is imported once.
 */
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
      // If the error has a retry time, the server is still performing this batch for an earlier run that was killed.
      if (!isOfRows || error.retryAfterSeconds !== undefined) throw error
      return rows.length === 1 ? [refuseOnly(error)] : []
    }
  }
}

/** A row must be an object with type and data, because a server would tokenize any other value. */
function isRequest({ value, fault }: Row): boolean {
  return fault === undefined && isObject(value) && 'type' in value && 'data' in value
}

function refuseOnly({ message, errors }: CofferError): RowResult {
  const bare = (path: string) => path.replace(/^\[0\]\.?/, '')
  const own = errors && Object.fromEntries(Object.entries(errors).map(([path, texts]) => [bare(path), texts]))
  return refuse({ message: bare(message), errors: own })
}

function readTokens(tokens: unknown, count: number): RowResult[] {
  const areTokens = Array.isArray(tokens) && tokens.every((each) => typeof each?.id === 'string')
  if (!areTokens || tokens.length !== count)
    throw new CofferError('unavailable', 'The answer of the server is not the list of imported tokens.')
  return tokens.map(({ id, _extras }) => ({
    status: _extras?.deduplicated === true ? 'deduplicated' : 'created',
    id,
  }))
}
