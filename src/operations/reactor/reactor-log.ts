/** What is kept of the last runs of a reactor, for the owner of the vault alone: it may hold what the code was given. */
import { formatDate } from '../../domain/dates.js'
import type { ReactorLogRecord } from '../../domain/records.js'
import type { CofferError } from '../../errors.js'
import type { ReactorRun } from '../../framework/reactor-runtime.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'

/** Runs of one reactor that are shown; older ones go many at a time, because removing is what costs most here. */
export const KEPT_RUNS = 100
const REMOVED_AT_ONCE = 100
/** Console text of one run that is kept; what comes after is left out. */
const KEPT_CHARACTERS = 32 * 1024

/** Keeps `run`, and forgets the oldest ones beyond {@link KEPT_RUNS}. `error` is what came of it, if anything. */
export async function keepRun(
  store: StoreWriter,
  tenant: number,
  about: { id: string; reactorId: string; traceId: string },
  run: Omit<ReactorRun, 'outcome'>,
  error: CofferError | undefined,
): Promise<void> {
  const ending =
    error === undefined
      ? { outcome: 'done', status: 200 }
      : {
          outcome: error.code,
          status: error.status,
          detail: error.message,
          ...(error.errors === undefined ? {} : { errors: error.errors }),
        }
  const record: ReactorLogRecord = {
    id: about.id,
    reactor_id: about.reactorId,
    ...ending,
    duration_ms: Math.round(run.durationMs * 10) / 10,
    memory_mib: Math.round(run.memoryMiB * 10) / 10,
    console: cutConsole(run.console),
    ...(run.stack === undefined ? {} : { stack: run.stack }),
    created_at: formatDate(store.now),
    trace_id: about.traceId,
  }
  await store.insert('reactor_log', tenant, record, { fresh: true })
  await forgetOldest(store, tenant, about.reactorId)
}

function cutConsole(lines: ReactorRun['console']): ReactorLogRecord['console'] {
  const kept: ReactorLogRecord['console'] = []
  let left = KEPT_CHARACTERS
  for (const { level, text } of lines) {
    if (text.length > left)
      return [...kept, { level: 'warn', text: '[the rest of the console was not kept]' }]
    kept.push({ level, text })
    left -= text.length + 1
  }
  return kept
}

async function forgetOldest(store: StoreWriter, tenant: number, reactorId: string): Promise<void> {
  const where = { field: 'reactor', value: reactorId }
  // One that stands so far back is there only when it is time; looking for it opens nothing else.
  const last = await store.find('reactor_log', tenant, { where, page: KEPT_RUNS + REMOVED_AT_ONCE, size: 1 })
  if (last.records.length === 0) return
  const { records } = await store.find('reactor_log', tenant, { where, page: 2, size: KEPT_RUNS })
  for (const { id } of records) await store.remove('reactor_log', tenant, id)
}

/** Forgets every run of a reactor. */
export async function removeRuns(store: StoreWriter, tenant: number, reactorId: string): Promise<void> {
  const where = { field: 'reactor', value: reactorId }
  for (;;) {
    const { records } = await store.find('reactor_log', tenant, { where, page: 1, size: REMOVED_AT_ONCE })
    if (records.length === 0) return
    for (const { id } of records) await store.remove('reactor_log', tenant, id)
  }
}

/** The last runs of a reactor, newest first, at most {@link KEPT_RUNS}. */
export async function listRuns(
  store: StoreReader,
  tenant: number,
  reactorId: string,
): Promise<ReactorLogRecord[]> {
  const where = { field: 'reactor', value: reactorId }
  return (await store.find('reactor_log', tenant, { where, page: 1, size: KEPT_RUNS })).records
}
