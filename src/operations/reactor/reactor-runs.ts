/** Stored runs of reactors may contain arguments. Therefore only the owner of the vault can read stored runs. */
import { omitUndefined } from '../../domain/omit-undefined.js'
import { ALL_WITHHELD, type GivenData } from '../../domain/reactor/printed.js'
import { withoutRunKeysIn } from '../../domain/reactor/run-key.js'
import type { ReactorRunRecord } from '../../domain/records/records.js'
import type { CofferError } from '../../errors.js'
import type { Context, Session } from '../../framework/context.js'
import { owner } from '../../framework/declaration.js'
import { query } from '../../framework/operation.js'
import { arrayOf, count, date, number, object, text, texts } from '../../framework/output.js'
import { newestInput } from '../../framework/page.js'
import type { ReactorRun } from '../../framework/ports/reactors.js'
import { closedInput } from '../../framework/schema.js'
import { requireRecord } from '../../framework/unit.js'
import type { StoreWriter } from '../../storage/store.js'

/** At most this many runs of a reactor are listed. Older runs are removed in batches, which is faster. */
const KEPT_RUNS = 100
const REMOVED_AT_ONCE = 100
const KEPT_CHARACTERS = 32 * 1024

/** `ended`: the error or status of the run. `given`: the data to redact. */
export async function keepRun(
  { store, caller, createUuid, date }: Context,
  { traceId }: Session,
  reactor_id: string,
  run: ReactorRun,
  ended: CofferError | number,
  given: GivenData,
): Promise<void> {
  const { code, status, message, errors } =
    typeof ended === 'number' ? { code: 'done', status: ended } : ended
  const lines = cutConsole(run.console)
  const said = withoutRunKeysIn(omitUndefined({ detail: message, errors, stack: run.stack }))
  const record: ReactorRunRecord = {
    id: createUuid(),
    reactor_id,
    outcome: code,
    status,
    ...said,
    duration_ms: Math.round(run.durationMs * 10) / 10,
    memory_mib: Math.round(run.memoryMiB * 10) / 10,
    console: lines,
    ...omitUndefined({ scrubbed: given.scrub({ console: lines, ...said }) }),
    created_at: date,
    trace_id: traceId,
  }
  await store.insert('reactor_log', caller.tenant, record, { fresh: true })
  await removeOldest(store, caller.tenant, reactor_id)
}

function cutConsole(lines: ReactorRun['console']): ReactorRunRecord['console'] {
  const kept: ReactorRunRecord['console'] = []
  let left = KEPT_CHARACTERS
  for (const { level, text } of lines) {
    if (text.length > left)
      return [...kept, { level: 'warn', text: '[the rest of the console output was not stored]' }]
    kept.push({ level, text })
    left -= text.length + 1
  }
  return kept
}

async function removeOldest(store: StoreWriter, tenant: number, reactorId: string): Promise<void> {
  const where = { field: 'reactor', value: reactorId }
  // If there is a run at this position, a whole batch of older runs can be removed.
  const position = { where, page: KEPT_RUNS + REMOVED_AT_ONCE, size: 1 }
  if ((await store.find('reactor_log', tenant, position)).records.length === 0) return
  const { records } = await store.find('reactor_log', tenant, { where, page: 2, size: KEPT_RUNS })
  for (const { id } of records) await store.remove('reactor_log', tenant, id)
}

const runsInput = closedInput(['id'], {
  id: { type: 'string', refersTo: 'reactor', description: 'The id of the reactor, or its name.' },
  number: newestInput(KEPT_RUNS, 'The number of runs.'),
})

const runsOutput = arrayOf(
  object({
    id: text,
    reactor_id: text,
    outcome: text,
    status: count,
    'detail?': text,
    'errors?': { type: 'object', additionalProperties: texts },
    duration_ms: number,
    memory_mib: number,
    console: arrayOf(object({ level: text, text })),
    'stack?': text,
    created_at: date,
    trace_id: text,
  }),
)

/** Returns the runs, oldest first. */
async function readRuns(context: Context, { id, number: most = 20 }: { id: string; number?: number }) {
  await requireRecord(context, 'reactor', id)
  const request = { where: { field: 'reactor', value: id }, page: 1, size: Math.max(1, most) }
  const { records } = await context.store.find('reactor_log', context.caller.tenant, request)
  return records.slice(0, most).toReversed()
}

export const listReactorRuns = query({
  name: 'reactor logs',
  plaintext: 'refused',
  access: owner,
  summary: 'List the last runs of a reactor: outcome, duration, memory, console.',
  details:
    'At most 100 runs are listed. Runs may contain arguments, so only the owner of the vault can read runs.',
  input: runsInput,
  output: runsOutput,
  cli: { positionals: ['id'], columns: ['created_at', 'outcome', 'status', 'duration_ms', 'memory_mib'] },
  examples: ['coffer reactor logs greet', 'coffer reactor logs greet -n 1 -o ndjson'],
  run: async (context, input) => (await readRuns(context, input)).map(({ scrubbed: _, ...run }) => run),
})

export const listScrubbedRuns = query({
  name: 'reactor scrubbed-logs',
  plaintext: 'refused',
  access: owner,
  summary: 'List the last runs of a reactor, with their data redacted.',
  input: runsInput,
  output: runsOutput,
  cli: { isInternal: true },
  examples: [],
  run: async (context, input) => (await readRuns(context, input)).map(scrubRun),
})

function scrubRun({ scrubbed, console: lines, detail, errors, stack, ...run }: ReactorRunRecord) {
  const isSilent = lines.length === 0 && (detail ?? errors ?? stack) === undefined
  const shown = isSilent ? {} : (scrubbed ?? ALL_WITHHELD)
  return { ...run, console: [], ...shown, ...omitUndefined({ stack: frameOf(stack) }) }
}

/** Returns the line of the first frame in the reactor's code. Omits the name of the function, which may be data. */
function frameOf(stack: string | undefined): string | undefined {
  const [, line] = /\breactor\.js:(\d{1,5})\b/.exec(stack ?? '') ?? []
  return line === undefined ? undefined : `at reactor.js:${line}`
}
