import type { TenantEntity } from './token-record.js'

export type UpdaterStatus = 'pending' | 'processing' | 'completed' | 'failed'

/** A batch job of the account updater. Until the file is uploaded, the record expires at `expires_at`. */
export interface UpdaterJobRecord extends TenantEntity {
  status: UpdaterStatus
  /** `waiting`: the delivery queue processes the file when the job is due. */
  state?: 'waiting' | undefined
  due_at?: string | undefined
  expires_at: string
  /** The secrets of the addresses for the upload and the download, base64url. */
  upload_secret: string
  download_secret: string
  /** The kind of the caller that created the job, whose id is `created_by`. The new tokens are created in its name. */
  actor_type: 'application' | 'user' | 'system'
  /** The caller was in no-reveal mode. */
  no_reveal?: true | undefined
  deduplicates?: boolean | undefined
  result_version: '1' | '1.1' | '1.2'
  /** Why the uploaded bytes are not a file to read. Known at the upload, and told when the job fails. */
  fault?: string | undefined
  /** How far the file is processed, in characters, and the number of its rows and of the parts of the result so far. */
  read: number
  requests: number
  parts: number
  results: Record<string, number>
  errors?: string[] | undefined
  /** When the job was completed. The download works for an hour from then on. */
  completed_at?: string | undefined
}

/** A part of a file of a job: the uploaded file as a whole, or the rows of the result that one unit of work wrote. */
export interface UpdaterPartRecord {
  /** `JOB/request`, or `JOB/` and the number of the part. */
  id: string
  job_id: string
  text: string
  state?: undefined
  due_at?: string
}
