/** Loads tokens in batches, for imports and seeds: each row is checked, then created or refused, on its own. */
import { Budget } from '../../domain/expression/budget.js'
import { isObject } from '../../domain/json/json.js'
import type { TokenDraft } from '../../domain/token/token.js'
import { CofferError, validationError } from '../../errors.js'
import type { CheckTools, Context } from '../../framework/operation.js'
import type { Existing } from '../../framework/outcome.js'
import { inTurns } from './in-turns.js'
import type { TokenView } from './token-attributes.js'
import { checkNewToken, createFrom } from './token-write.js'

/** A row that was checked: what it creates, or why it is refused. */
export type CheckedRow = TokenDraft | CofferError

const ROW_ERRORS: readonly string[] = ['validation', 'too_much_work', 'forbidden', 'conflict']
/** Rows in one turn of the event loop, unless their expressions take long. */
const ROWS_IN_A_TURN = 50

/** `rows` are what `token create` takes, as far as they were validated. */
export async function checkRows(rows: readonly unknown[], tools: CheckTools): Promise<CheckedRow[]> {
  const checked: CheckedRow[] = []
  for await (const row of inTurns(rows, ROWS_IN_A_TURN, tools.turns)) {
    const budget = new Budget(tools.turns)
    try {
      if (!isObject(row)) throw validationError('A row must be a JSON object.')
      checked.push(await checkNewToken(row, tools, budget))
    } catch (error) {
      checked.push(requireOfRow(error))
    }
    if (budget.isTurnOver) await budget.pause()
  }
  return checked
}

/**
 * Creates the tokens of a batch within one unit of work, in order. A row is refused before its first write, so the rows
 * that are written stay whole. `stops`: the first refused row is the last.
 */
export async function loadRows(
  context: Context,
  rows: readonly CheckedRow[],
  { stops }: { stops: boolean },
): Promise<(TokenView | Existing<TokenView> | CofferError)[]> {
  const loaded: (TokenView | Existing<TokenView> | CofferError)[] = []
  for await (const row of inTurns(rows, ROWS_IN_A_TURN, context.turns)) {
    try {
      if (row instanceof CofferError) throw row
      loaded.push(await createFrom(context, row))
    } catch (error) {
      loaded.push(requireOfRow(error))
      if (stops) break
    }
  }
  return loaded
}

/** The error, if it refuses one row. @throws any other */
function requireOfRow(error: unknown): CofferError {
  if (error instanceof CofferError && ROW_ERRORS.includes(error.code)) return error
  throw error
}
