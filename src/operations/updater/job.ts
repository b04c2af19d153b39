import { omitUndefined } from '../../domain/omit-undefined.js'
import type { UpdaterJobRecord } from '../../domain/records/updater-record.js'
import { DEFAULT_PUBLIC_URL } from '../../domain/settings.js'
import { addressOfFile } from '../../domain/updater/paths.js'
import { CofferError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { component, count, date, enumOf, text, texts, uuid } from '../../framework/output.js'
import type { Infer } from '../../framework/schema.js'
import type { StoreReader } from '../../storage/store.js'

export const JOB = 'account_updater_job'
export const HOUR_MS = 60 * 60 * 1000

const counts = { type: 'object', additionalProperties: count } as const
const spelled = (name: string) => ({ description: `Equal to ${name}: clients read this spelling.` })

export const jobOutput = component('AccountUpdaterJob', ['id', 'status', 'requests', 'created_at'], {
  id: uuid,
  tenant_id: uuid,
  tenantId: { ...uuid, ...spelled('tenant_id') },
  status: enumOf('pending', 'processing', 'completed', 'failed'),
  created_by: uuid,
  createdBy: { ...uuid, ...spelled('created_by') },
  created_at: date,
  createdAt: { ...date, ...spelled('created_at') },
  'expires_at?': { ...date, description: 'Only while the job is pending.' },
  'expiresAt?': { ...date, ...spelled('expires_at') },
  'upload_url?': {
    ...text,
    description: 'Only while the job is pending. A PUT to this address needs no key.',
  },
  uploadUrl: { ...text, description: 'Equal to upload_url, but always present: clients require it.' },
  'errors?': { ...texts, description: 'Only for a failed job.' },
  'requests?': { ...count, description: 'The number of rows, if the job is completed.' },
  'results?': { ...counts, description: 'How many rows have each result code, if the job is completed.' },
  'download_url?': {
    ...text,
    description:
      'Only for a completed job. A download needs no key. The address works for an hour after the job was completed.',
  },
  'downloadUrl?': { ...text, ...spelled('download_url') },
})

export type JobView = Infer<typeof jobOutput>

export function isJob(record: object): record is UpdaterJobRecord {
  return !('job_id' in record)
}

/** Returns undefined if no job has this id, or if the file of the job was not uploaded in time. */
export async function findJob(
  store: StoreReader,
  tenant: number,
  id: string,
): Promise<UpdaterJobRecord | undefined> {
  const record = await store.get(JOB, tenant, id)
  return record !== undefined && isJob(record) ? record : undefined
}

/** @throws CofferError `not_found` */
export async function requireJob({ store, caller }: Context, id: string): Promise<UpdaterJobRecord> {
  const job = await findJob(store, caller.tenant, id)
  if (job !== undefined) return job
  throw new CofferError('not_found', 'There is no updater job with this id, or it has expired.')
}

/** Without the setting `public_url`, the addresses of files begin with the address that the caller has used. */
export async function viewJob(context: Context, job: UpdaterJobRecord): Promise<JobView> {
  const { id, tenant_id, status, created_by, created_at, errors } = job
  const base = (await context.setting('public_url')) ?? context.origin?.base ?? DEFAULT_PUBLIC_URL
  const uploadUrl = addressOfFile(base, id, job.upload_secret)
  const isPending = status === 'pending'
  const isCompleted = status === 'completed'
  const expires = isPending ? job.expires_at : undefined
  const download = isCompleted ? addressOfFile(base, id, job.download_secret) : undefined
  const view = {
    id,
    tenant_id,
    tenantId: tenant_id,
    status,
    created_by,
    createdBy: created_by,
    created_at,
    createdAt: created_at,
    expires_at: expires,
    expiresAt: expires,
    upload_url: isPending ? uploadUrl : undefined,
    uploadUrl,
    errors,
    requests: isCompleted ? job.requests : undefined,
    results: isCompleted ? job.results : undefined,
    download_url: download,
    downloadUrl: download,
  }
  return omitUndefined(view) as JobView
}
