/** Imports tokens in batches: many in one unit of work, each created or refused on its own. */

import { omitUndefined } from '../../domain/omit-undefined.js'
import type { ImportRecord } from '../../domain/records/import-record.js'
import { CofferError, conflict, type PropertyErrors } from '../../errors.js'
import { type Context, operation } from '../../framework/operation.js'
import { Existing } from '../../framework/outcome.js'
import { arrayOf, enumOf, object, text } from '../../framework/output.js'
import { closedInput, type Infer } from '../../framework/schema.js'
import { type CheckedRow, checkRows, loadRows } from './load-tokens.js'
import type { TokenView } from './token-attributes.js'

const MOST_ROWS = 10_000
const RESUMABLE_MS = 30 * 24 * 3_600_000

const resultOutput = object({
  status: enumOf('created', 'deduplicated', 'refused'),
  'id?': text,
  'reason?': text,
  'errors?': { type: 'object', additionalProperties: arrayOf(text) },
})

export type RowResult = ImportRecord['results'][number]

const importInput = closedInput(['rows'], {
  rows: { type: 'array', items: {}, maxItems: MOST_ROWS },
  stops: { type: 'boolean', description: 'Whether the first row that is refused is the last.' },
  rehearses: { type: 'boolean', description: 'Whether nothing is written.' },
  run: { type: 'string', format: 'uuid', description: 'A run that can be resumed.' },
  first: { type: 'integer', minimum: 0, description: 'The number of rows in earlier batches of the run.' },
})

export const importTokens = operation({
  name: 'token import',
  summary: 'Create tokens from a file: NDJSON, a JSON array, or CSV.',
  details:
    'A row is what token create takes. The format is that of the name or of the first character. The columns of CSV are\n' +
    'paths, such as data.number, unless --map gives them one; an empty cell is absent. The first row that is refused ends\n' +
    'the import, unless --continue-on-error; the rows before it stay. With --resume FILE, given from the beginning, a run\n' +
    'that was cut short goes on when the same command is started again, within 30 days, and creates no row twice.',
  audience: 'command',
  permissions: ['token:create'],
  input: importInput,
  output: object({ results: arrayOf(resultOutput) }),
  examples: [
    `echo '{"type":"token","data":"a"}' | coffer token import`,
    `printf 'kind,secret\\ntoken,a\\n' | coffer token import --format csv --map kind=type --map secret=data`,
  ],
  log: { operation: 'create', message: 'Token created' },
  check: ({ rows = [] }, tools) => checkRows(rows, tools),
  async runDetached(session, input, prepared) {
    try {
      return await session.inUnit((context) => importBatch(context, input, prepared))
    } catch (error) {
      if (error instanceof Rehearsed) return { results: error.results }
      throw error
    }
  },
})

/** Thrown by a rehearsal, so that its unit of work leaves nothing. */
class Rehearsed extends Error {
  readonly results: RowResult[]
  constructor(results: RowResult[]) {
    super('rehearsed')
    this.results = results
  }
}

/** @throws CofferError `conflict` for a batch that does not follow those of its run */
async function importBatch(
  context: Context,
  { stops = false, rehearses = false, run, first = 0 }: Omit<Infer<typeof importInput>, 'rows'>,
  prepared: readonly CheckedRow[],
): Promise<{ results: RowResult[] }> {
  const { store, caller, now } = context
  const before = run === undefined ? undefined : await store.get('import', caller.tenant, run)
  if (before !== undefined) {
    // The batch was committed, but its sender did not learn of it.
    const isAgain = before.first === first && before.results.length > 0
    if (before.actor_id === caller.actor.id && isAgain) return { results: before.results }
    if (before.actor_id !== caller.actor.id || before.first + before.results.length !== first)
      throw conflict('This batch does not follow what was imported of this run.')
  } else if (first > 0 && run !== undefined)
    throw conflict(
      `Nothing is known of this run any more; after 30 days it is forgotten. Import the rows after the first ${first} anew.`,
    )
  const results = (await loadRows(context, prepared, { stops })).map(describeRow)
  // A refused row that ended the run is not done: the run may be resumed with a corrected row.
  const done = stops ? results.filter(({ status }) => status !== 'refused') : results
  if (rehearses) throw new Rehearsed(results)
  // An empty batch asks how far the run came.
  if (run === undefined || prepared.length === 0) return { results }
  const record: ImportRecord = { id: run, actor_id: caller.actor.id, first, results: done }
  const kept = { expires: now + RESUMABLE_MS }
  if (before === undefined) await store.insert('import', caller.tenant, record, kept)
  else await store.replace('import', caller.tenant, record, kept)
  return { results }
}

function describeRow(made: TokenView | Existing<TokenView> | CofferError): RowResult {
  if (made instanceof CofferError) return refuse(made)
  return made instanceof Existing
    ? { status: 'deduplicated', id: made.result.id }
    : { status: 'created', id: made.id }
}

export function refuse(error: { message: string; errors?: PropertyErrors | undefined }): RowResult {
  return { status: 'refused', reason: error.message, ...omitUndefined({ errors: error.errors }) }
}
