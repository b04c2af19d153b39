/**
 * Processes the uploaded files of batch jobs, a few rows in each unit of work. The record of the job stores
 * how many rows were processed.
 */
import { formatDate } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { UpdaterJobRecord } from '../../domain/records/updater-record.js'
import {
  type FileHeader,
  type RequestRow,
  readDate,
  readHeader,
  readRows,
} from '../../domain/updater/request-file.js'
import { formatRow, type ResultRow } from '../../domain/updater/result-file.js'
import { CofferError } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { Context } from '../../framework/context.js'
import { writeEntries } from '../../framework/events.js'
import type { Host } from '../../framework/host.js'
import { LOCAL_LIMITS } from '../../framework/limits.js'
import { runUnit } from '../../framework/unit.js'
import { partId, readPart, requestId } from './files.js'
import { findJob, JOB } from './job.js'
import { createJob } from './jobs.js'
import { ALL_RIGHTS, updateCard } from './update-card.js'

const ROWS_AT_ONCE = 25

interface Work {
  host: Host
  tenant: number
  id: string
  /** For this time in ms, no other server takes over the job. */
  leaseMs: number
  isStopped(): boolean
}

/**
 * If `isStopped` returns true, the job stops, and continues later with its next row. If the data of the vault is
 * replaced meanwhile, this function returns without an error.
 */
export async function processJob(work: Work): Promise<void> {
  const { host, tenant, id, isStopped } = work
  const { generation } = host
  const { job, text } = await host.store.read(async (reader) => ({
    job: await findJob(reader, tenant, id),
    text: await readPart(reader, tenant, requestId(id)),
  }))
  if (job === undefined || text === undefined) return
  const header = job.fault ?? readHeader(text)
  const actor = { type: job.actor_type, id: job.created_by }
  const caller: Caller = { tenant, actor, ...ALL_RIGHTS, ...(job.no_reveal && { isNoReveal: true }) }
  const traceId = job.trace_id ?? host.createUuid()
  const about = { host, caller, definition: createJob, traceId, generation, limits: LOCAL_LIMITS }
  const step = (context: Context) =>
    typeof header === 'string' ? fail(context, id, header) : processRows(context, work, text, header)
  try {
    while (!isStopped() && !(await runUnit({ ...about, rights: 'record' }, step)));
  } catch (error) {
    if (host.generation === generation) throw error
  }
}

async function fail(context: Context, id: string, error: string): Promise<boolean> {
  const job = await findRunning(context, id)
  if (job !== undefined) await end(context, { ...job, status: 'failed', errors: [error] })
  return true
}

async function processRows(
  context: Context,
  { id, leaseMs, host }: Work,
  text: string,
  header: FileHeader,
): Promise<boolean> {
  const { store, caller } = context
  const job = await findRunning(context, id)
  if (job === undefined) return true
  const { rows, end: read } = readRows(text, header, Math.max(job.read, header.end), ROWS_AT_ONCE)
  const results = { ...job.results }
  const lines: string[] = []
  for (const row of rows) {
    const result = await updateRow(context, job, row)
    results[result.code] = (results[result.code] ?? 0) + 1
    if (result.code !== 'NO_UPDATE') lines.push(formatRow(result, job.result_version))
  }
  const part = { id: partId(id, job.parts), job_id: id, text: lines.join('') }
  if (lines.length > 0) await store.insert(JOB, caller.tenant, part, { fresh: true })
  const requests = job.requests + rows.length
  const after = { ...job, read, results, requests, parts: job.parts + (lines.length > 0 ? 1 : 0) }
  if (read >= text.length) {
    // During a jump of the clock, `completed_at` is the end of the jump, so that the result can be downloaded later.
    const completed_at = formatDate(store.keptFrom)
    await end(context, { ...after, status: 'completed', completed_at })
    return true
  }
  const due_at = host.store.isShared ? formatDate(context.now + leaseMs) : job.due_at
  await store.replace(JOB, caller.tenant, { ...after, due_at })
  return false
}

async function findRunning({ store, caller }: Context, id: string): Promise<UpdaterJobRecord | undefined> {
  // A deleted tenant has no keys, so the records of the tenant cannot be read.
  if ((await store.get('tenant', 0, String(caller.tenant))) === undefined) return undefined
  const job = await findJob(store, caller.tenant, id)
  return job?.status === 'processing' ? job : undefined
}

async function updateRow(context: Context, job: UpdaterJobRecord, row: RequestRow): Promise<ResultRow> {
  const request = { token_id: row.token, ...readDate(row), isBatch: true, deduplicates: job.deduplicates }
  try {
    const { code, token, change } = await updateCard(context, request)
    return {
      ...row,
      code,
      ...omitUndefined({
        new_token: token?.id,
        new_expiration_month: change?.new_expiration_month,
        new_expiration_year: change?.new_expiration_year,
        new_fingerprint: token?.fingerprint,
        new_brand: token?.card?.brand,
        new_last4: token?.card?.last4,
      }),
    }
  } catch (error) {
    // If no token can be created for this card, the job continues with the next row.
    if (error instanceof CofferError && error.status < 500 && error.code !== 'conflict')
      return { ...row, code: 'ERR_UNDEFINED' }
    throw error
  }
}

/** In the log record and in the event, the actor is the system, and not the caller who created the job. */
async function end(
  context: Context,
  { state: _, due_at: __, ...job }: UpdaterJobRecord & { status: 'completed' | 'failed' },
): Promise<void> {
  const { store, caller, createUuid } = context
  const { id, status } = job
  await store.replace(JOB, caller.tenant, job)
  await store.remove(JOB, caller.tenant, requestId(id))
  const as = { operation: 'update', message: `Account updater job ${status}` } as const
  const event = { type: `account-updater.job.${status}`, about: { id, status } } as const
  const entry = { type: JOB, id, as, event, actor: { type: 'system' } } as const
  context.enqueue(await writeEntries(context, await context.tenant(), [entry], createUuid()))
}
