/**
 * The uploaded file and the result of a batch job. Everyone who has the address of a file can access the file, because
 * the address contains a secret.
 */
import { formatDate, parseDuration } from '../../domain/dates.js'
import { decodeUtf8 } from '../../domain/json/json.js'
import type { UpdaterJobRecord } from '../../domain/records/updater-record.js'
import { formatHeader } from '../../domain/updater/result-file.js'
import { CofferError } from '../../errors.js'
import type { Host } from '../../framework/host.js'
import type { Waiting } from '../../framework/ports/deliveries.js'
import { readSetting } from '../../framework/setting.js'
import { readAll, type StoreReader, type StoreWriter } from '../../storage/store.js'
import { findJob, HOUR_MS, JOB } from './job.js'

type FilesHost = Pick<Host, 'store' | 'isEqualSecret' | 'deliveries'>

interface Asked {
  id: string
  secret: string
}

interface Found {
  tenant: number
  job: UpdaterJobRecord
}

/** Searches all tenants, because the address of the file does not contain the tenant. */
export async function findJobOfAny(store: StoreReader, id: string): Promise<Found | undefined> {
  for (const { number: tenant } of await readAll(store, 'tenant', 0)) {
    const job = await findJob(store, tenant, id)
    if (job !== undefined) return { tenant, job }
  }
  return undefined
}

/**
 * @throws CofferError `forbidden`, also for an unknown job, so that the error does not show which jobs exist
 */
export async function checkUpload(host: FilesHost, asked: Asked): Promise<void> {
  await host.store.read((reader) => requireUpload(host, reader, asked))
}

/** Stores the uploaded file. The delivery queue then processes the file. @throws CofferError `forbidden` */
export async function uploadFile(host: FilesHost, asked: Asked, bytes: Uint8Array): Promise<void> {
  const waiting = await host.store.write(async (writer) => {
    const { tenant, job } = await requireUpload(host, writer, asked)
    return storeFile(writer, tenant, job, bytes)
  })
  host.deliveries.enqueue(waiting)
}

/** Returns the deliveries to enqueue after the commit. */
export async function storeFile(
  store: StoreWriter,
  tenant: number,
  job: UpdaterJobRecord,
  bytes: Uint8Array,
): Promise<Waiting[]> {
  const { text, fault } = decode(bytes)
  const delay = parseDuration(await readSetting(store, 'account_updater.delay')) ?? 0
  const due_at = formatDate(store.now + delay)
  const started = { ...job, status: 'processing', state: 'waiting', due_at } as const
  await store.insert(JOB, tenant, { id: requestId(job.id), job_id: job.id, text }, { fresh: true })
  await store.replace(JOB, tenant, fault === undefined ? started : { ...started, fault })
  return [{ kind: JOB, tenant, lane: '', id: job.id }]
}

function decode(bytes: Uint8Array): { text: string; fault?: string } {
  try {
    return { text: decodeUtf8(bytes, 'the file') }
  } catch {
    return { text: '', fault: 'File must be UTF-8' }
  }
}

/**
 * Returns the result of the job as CSV.
 * @throws CofferError `forbidden` if the secret is wrong, if the job is unknown or not completed, or if the job was
 * completed more than an hour ago
 */
export async function downloadFile(host: FilesHost, { id, secret }: Asked): Promise<string> {
  return host.store.read(async (reader) => {
    const found = await findJobOfAny(reader, id)
    const isOpen =
      found?.job.completed_at !== undefined && reader.now < Date.parse(found.job.completed_at) + HOUR_MS
    if (isOpen && host.isEqualSecret(secret, found.job.download_secret))
      return readResult(reader, found.tenant, found.job)
    throw new CofferError('forbidden', 'This address for a download is wrong or has expired.')
  })
}

export async function readResult(store: StoreReader, tenant: number, job: UpdaterJobRecord): Promise<string> {
  const texts = [formatHeader(job.result_version)]
  for (let part = 0; part < job.parts; part++)
    texts.push((await readPart(store, tenant, partId(job.id, part))) ?? '')
  return texts.join('')
}

export async function readPart(store: StoreReader, tenant: number, id: string): Promise<string | undefined> {
  const record = await store.get(JOB, tenant, id)
  return record !== undefined && 'job_id' in record ? record.text : undefined
}

export const requestId = (job: string) => `${job}/request`
export const partId = (job: string, part: number) => `${job}/${part}`

async function requireUpload(host: FilesHost, store: StoreReader, { id, secret }: Asked): Promise<Found> {
  const found = await findJobOfAny(store, id)
  if (found?.job.status === 'pending' && host.isEqualSecret(secret, found.job.upload_secret)) return found
  throw new CofferError('forbidden', 'This address for an upload is wrong, was used before, or has expired.')
}
