/** Sends the rows of an import by the batch: to a vault, or to a server, which takes a batch as a document to tokenize. */
import { isObject } from '../../domain/json/json.js'
import { Turns } from '../../domain/turns.js'
import { CofferError } from '../../errors.js'
import type { CheckTools } from '../../framework/operation.js'
import { importTokens, type RowResult, refuse } from '../../operations/token/import.js'
import type { Task } from '../task.js'
import type { Row } from './rows.js'

/** A batch: rows in their order, `first` the number of those before. */
export interface Batch {
  first: number
  rows: readonly Row[]
}

export interface SendOptions {
  /** Names the run. */
  run: string
  /** Whether the first row that is refused is the last. */
  stops: boolean
  rehearses: boolean
}

/** The results of the rows, in their order; fewer if the last of them ended the run. */
export type Send = (batch: Batch) => Promise<readonly RowResult[]>

/** To the vault of this run, which notes the run in the same unit of work: a batch that is sent again is not repeated. */
export function sendToVault({ ask }: Task, { run, stops, rehearses }: SendOptions): Send {
  return async ({ first, rows }) => {
    // A row that cannot be read is refused as any other that is no object.
    const values = rows.map(({ value, fault }) => (fault === undefined ? value : null))
    const named = rehearses ? { rehearses } : { run, first }
    const { results } = (await ask({ rows: values, stops, ...named })) as { results: RowResult[] }
    return results.map((result, at) => withFault(rows[at]!, result))
  }
}

function withFault({ fault }: Row, result: RowResult): RowResult {
  return fault === undefined ? result : refuse({ message: fault })
}

/** Codes of a batch in which some row is refused. */
const OF_ROWS: readonly string[] = ['validation', 'forbidden', 'conflict', 'too_large', 'unprocessable']

/**
 * To a server. A batch that it refuses is divided until the refused rows are alone. Idempotency keys are those of the
 * rows, so that a run that goes on repeats none.
 */
export function sendToServer({ ask }: Task, { run, stops }: SendOptions): Send {
  const send = async ({ first, rows }: Batch): Promise<RowResult[]> => {
    const [only] = rows
    if (rows.length === 1 && only?.fault !== undefined) return [refuse({ message: only.fault })]
    const fault = rows.find(isNoRequest)
    try {
      if (fault !== undefined) throw NO_REQUEST
      const key = `${run}.${first}.${rows.length}`
      const tokens = await ask({ payload: rows.map(({ value }) => value) }, 'token tokenize', key)
      return readTokens(tokens, rows.length)
    } catch (error) {
      if (!(error instanceof CofferError) || !OF_ROWS.includes(error.code)) throw error
      if (rows.length === 1)
        return [refuse({ message: error.message.replace(/^\[0\]\.?/, ''), errors: ownErrors(error) })]
    }
    const middle = rows.length >> 1
    const before = await send({ first, rows: rows.slice(0, middle) })
    if (stops && before.at(-1)?.status === 'refused') return before
    return [...before, ...(await send({ first: first + middle, rows: rows.slice(middle) }))]
  }
  return send
}

/** Anything else than an object with type and data would be a document with values to tokenize. */
function isNoRequest({ value, fault }: Row): boolean {
  return fault !== undefined || !isObject(value) || !('type' in value) || !('data' in value)
}

const NO_REQUEST = new CofferError('validation', 'A row must be a JSON object with type and data.')

function ownErrors({ errors }: CofferError): CofferError['errors'] {
  if (errors === undefined) return undefined
  return Object.fromEntries(
    Object.entries(errors).map(([path, texts]) => [path.replace(/^\[0\]\.?/, ''), texts]),
  )
}

function readTokens(tokens: unknown, count: number): RowResult[] {
  if (
    !Array.isArray(tokens) ||
    tokens.length !== count ||
    !tokens.every((each) => typeof each?.id === 'string')
  )
    throw new CofferError('unavailable', 'The server answered something else than the tokens of the rows.')
  return tokens.map(({ id, _extras }) => ({
    status: _extras?.deduplicated === true ? 'deduplicated' : 'created',
    id,
  }))
}

/** The tools of checks that run without a vault. */
export function createCheckTools(clock: () => number): CheckTools {
  let expressions: ReturnType<CheckTools['expressions']> | undefined
  const load = async () => {
    const { loadExpressions } = await import('../../vault/app.js')
    const { randomBytes } = await import('node:crypto')
    return loadExpressions({ bytes: (count) => randomBytes(count) })
  }
  return { now: async () => clock(), expressions: () => (expressions ??= load()), turns: new Turns() }
}

/** Checks rows without a server, which has no rehearsal: not whether an id is taken or a container may be written. */
export function rehearseHere({ stops }: SendOptions): Send {
  const tools = createCheckTools(Date.now)
  return async ({ rows }) => {
    const checked = (await importTokens.check!({ rows: rows.map(({ value }) => value) }, tools)) as unknown[]
    const results = checked.map((each, at): RowResult => {
      const result: RowResult = each instanceof CofferError ? refuse(each) : { status: 'created' }
      return withFault(rows[at]!, result)
    })
    const end = stops ? results.findIndex(({ status }) => status === 'refused') : -1
    return end === -1 ? results : results.slice(0, end + 1)
  }
}
