/**
 * Imports tokens in batches. One unit of work imports many rows. Each row is created or refused independently of the
 * other rows.
 */
import { Budget, ITEM_OF_BATCH_STEPS } from '../../domain/expression/budget.js'
import { isObject } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { ImportRecord } from '../../domain/records/token-record.js'
import { CofferError, conflict, type PropertyErrors, validationError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { type CheckTools, requires } from '../../framework/declaration.js'
import { detached } from '../../framework/operation.js'
import { Existing } from '../../framework/outcome.js'
import { arrayOf, enumOf, object, text } from '../../framework/output.js'
import { closedInput, type Infer } from '../../framework/schema.js'
import { checkNewToken, type NewToken } from './check-token.js'
import { createToken } from './create-token.js'
import { CREATED } from './token-attributes.js'

const MAX_ROWS = 10_000
const RESUMABLE_MS = 30 * 24 * 3_600_000
const ROW_ERRORS: readonly string[] = ['validation', 'too_much_work', 'forbidden', 'conflict']

const resultOutput = object({
  status: enumOf('created', 'deduplicated', 'refused'),
  'id?': text,
  'reason?': text,
  'errors?': { type: 'object', additionalProperties: arrayOf(text) },
})

export type RowResult = ImportRecord['results'][number]

const importInput = closedInput(['rows'], {
  rows: { type: 'array', items: {}, maxItems: MAX_ROWS },
  stops: { type: 'boolean', description: 'Whether the first refused row ends the import.' },
  rehearses: { type: 'boolean', description: 'Whether nothing is written.' },
  run: { type: 'string', format: 'uuid', description: 'A run that can be resumed.' },
  first: { type: 'integer', minimum: 0, description: 'The number of rows in earlier batches of the run.' },
})

export const importTokens = detached({
  name: 'token import',
  summary: 'Create tokens from a file: NDJSON, a JSON array, or CSV.',
  details:
    'A row has the attributes of token create. The name of the file or the first character of the text shows the format. The\n' +
    'columns of CSV are paths such as data.number, or get a path by --map. An empty cell counts as absent. The first refused\n' +
    'row ends the import, unless --continue-on-error is given. Earlier rows stay imported. If an import with --resume FILE was\n' +
    'interrupted, run the command again within 30 days. The command then continues the import, and creates no row twice.',
  access: requires('token:create'),
  input: importInput,
  output: object({ results: arrayOf(resultOutput) }),
  examples: [
    `echo '{"type":"token","data":"a"}' | coffer token import`,
    `printf 'kind,secret\\ntoken,a\\n' | coffer token import --format csv --map kind=type --map secret=data`,
  ],
  log: CREATED,
  check: ({ rows = [] }, tools) => checkRows(rows, tools),
  async run(session, input, checked) {
    let results: RowResult[] = []
    const undo = new Error('A rehearsal is always rolled back.')
    const batch = session.inUnit(async (context) => {
      results = await importBatch(context, input, checked)
      if (input.rehearses === true) throw undo
    })
    await batch.catch((error) => {
      if (error !== undo) throw error
    })
    return { results }
  },
})

async function checkRows(rows: readonly unknown[], tools: CheckTools): Promise<(NewToken | CofferError)[]> {
  const checked: (NewToken | CofferError)[] = []
  for (const row of rows) {
    if (tools.turns.use(ITEM_OF_BATCH_STEPS)) await tools.turns.next()
    const budget = new Budget(tools.turns)
    try {
      if (!isObject(row)) throw validationError('A row must be a JSON object.')
      checked.push(await checkNewToken(row, tools, budget))
    } catch (error) {
      checked.push(requireOfRow(error))
    }
  }
  return checked
}

/** Imports one batch. @throws CofferError `conflict` if the batch does not follow the last batch of its run */
async function importBatch(
  context: Context,
  { stops = false, run, first = 0 }: Infer<typeof importInput>,
  checked: readonly (NewToken | CofferError)[],
): Promise<RowResult[]> {
  const { store, caller, now } = context
  const actor_id = caller.actor.id
  const before = run === undefined ? undefined : await store.get('import', caller.tenant, run)
  const isOwn = before?.actor_id === actor_id
  // A sender that did not get the answer repeats a committed batch, possibly divided into smaller batches.
  const known = isOwn && first >= before.first ? before.results.slice(first - before.first) : []
  if (known.length > 0) return known.slice(0, checked.length || undefined)
  const done = isOwn ? before.first + before.results.length : undefined
  if (before !== undefined && done !== first) throw refuseOrder(first, done)
  if (before === undefined && run !== undefined && first > 0)
    throw conflict(
      `This run is older than 30 days. Start a new run that imports only the rows after row ${first}.`,
    )
  const results = await createRows(context, checked, stops)
  // With an empty batch, the sender finds out how many rows of the run were imported.
  if (run === undefined || checked.length === 0) return results
  // If `stops` is set, the refused row ends the run. The row is not stored, so that a resumed run can send a corrected
  // row.
  const kept = stops ? results.filter(({ status }) => status !== 'refused') : results
  const record = { id: run, actor_id, first, results: kept }
  const options = { expires: now + RESUMABLE_MS }
  if (before === undefined) await store.insert('import', caller.tenant, record, options)
  else await store.replace('import', caller.tenant, record, options)
  return results
}

/** `done`: the number of rows that the run has imported. Undefined if the run belongs to another caller. */
function refuseOrder(first: number, done: number | undefined): CofferError {
  if (done === undefined) return conflict('This batch does not follow the last batch of this run.')
  const rows = done === 1 ? '1 row' : `${done} rows`
  const problem = `The run has imported ${rows}, but this batch begins after row ${first}.`
  const remedy =
    first > done
      ? `If lines were added to the --resume file, remove all lines after line ${done + 1}.`
      : `If the end of the --resume file was lost, copy the rows after row ${done} into a new file, and import that file with ` +
        'another file as --resume.'
  return conflict(`${problem} ${remedy}`)
}

/** A row is refused before its first write, so a refused row leaves nothing behind. */
async function createRows(context: Context, rows: readonly (NewToken | CofferError)[], stops: boolean) {
  const results: RowResult[] = []
  for (const row of rows) {
    if (context.turns.use(ITEM_OF_BATCH_STEPS)) await context.turns.next()
    try {
      if (row instanceof CofferError) throw row
      const made = await createToken(context, row, (_, record) => record)
      const isExisting = made instanceof Existing
      const { id } = isExisting ? made.result : made
      results.push({ status: isExisting ? 'deduplicated' : 'created', id })
    } catch (error) {
      results.push(refuse(requireOfRow(error)))
      if (stops) break
    }
  }
  return results
}

function requireOfRow(error: unknown): CofferError {
  if (error instanceof CofferError && ROW_ERRORS.includes(error.code)) return error
  throw error
}

export function refuse(error: { message: string; errors?: PropertyErrors | undefined }): RowResult {
  return { status: 'refused', reason: error.message, ...omitUndefined({ errors: error.errors }) }
}
