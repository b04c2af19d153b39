/** The stored runs of reactors. They may contain arguments, so only the owner of the vault can read them. */
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { ReactorLogRecord } from '../../domain/records/records.js'
import type { CofferError } from '../../errors.js'
import type { Context, Session } from '../../framework/operation.js'
import type { ReactorRun } from '../../framework/ports/reactors.js'
import type { StoreReader, StoreWriter } from '../../storage/store.js'

/** Runs of one reactor that are listed. Older ones are removed in batches, because single removals are slow. */
export const KEPT_RUNS = 100
const REMOVED_AT_ONCE = 100
/** Limit of the stored console text of a run, in characters. */
const KEPT_CHARACTERS = 32 * 1024

/** Stores `run`, which ended with this error or status of its answer, and removes runs beyond {@link KEPT_RUNS}. */
export async function keepRun(
  { store, caller, createUuid, date }: Context,
  { traceId }: Session,
  reactor_id: string,
  run: ReactorRun,
  ended: CofferError | number,
): Promise<void> {
  const ending =
    typeof ended === 'number'
      ? { outcome: 'done', status: ended }
      : {
          outcome: ended.code,
          status: ended.status,
          detail: ended.message,
          ...omitUndefined({ errors: ended.errors }),
        }
  const record: ReactorLogRecord = {
    id: createUuid(),
    reactor_id,
    ...ending,
    duration_ms: Math.round(run.durationMs * 10) / 10,
    memory_mib: Math.round(run.memoryMiB * 10) / 10,
    console: cutConsole(run.console),
    ...omitUndefined({ stack: run.stack }),
    created_at: date,
    trace_id: traceId,
  }
  await store.insert('reactor_log', caller.tenant, record, { fresh: true })
  await removeOldest(store, caller.tenant, reactor_id)
}

function cutConsole(lines: ReactorRun['console']): ReactorLogRecord['console'] {
  const kept: ReactorLogRecord['console'] = []
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
  // Reads one record only: a run at this position exists when a batch is due.
  const last = await store.find('reactor_log', tenant, { where, page: KEPT_RUNS + REMOVED_AT_ONCE, size: 1 })
  if (last.records.length === 0) return
  const { records } = await store.find('reactor_log', tenant, { where, page: 2, size: KEPT_RUNS })
  for (const { id } of records) await store.remove('reactor_log', tenant, id)
}

/** Removes every run of a reactor, and every result. */
export async function removeRuns(store: StoreWriter, tenant: number, reactorId: string): Promise<void> {
  const where = { field: 'reactor', value: reactorId }
  const request = { where, page: 1, size: REMOVED_AT_ONCE }
  for (const kind of ['reactor_log', 'reactor_result'] as const)
    for (;;) {
      const { records } = await store.find(kind, tenant, request)
      if (records.length === 0) break
      for (const { id } of records) await store.remove(kind, tenant, id)
    }
}

/** Newest first, at most {@link KEPT_RUNS}. */
export async function listRuns(store: StoreReader, tenant: number, reactorId: string) {
  const where = { field: 'reactor', value: reactorId }
  return (await store.find('reactor_log', tenant, { where, page: 1, size: KEPT_RUNS })).records
}
