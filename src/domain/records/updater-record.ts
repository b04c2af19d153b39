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
  /**
   * The type of the caller that created the job. `created_by` is the id of this caller. New tokens are
   * created in the name of this caller.
   */
  actor_type: 'application' | 'user' | 'system'
  /** Whether the caller that created the job was in no-reveal mode. */
  no_reveal?: true | undefined
  deduplicates?: boolean | undefined
  result_version: '1' | '1.1' | '1.2'
  /**
   * The reason why the uploaded file cannot be read. The upload stores the reason, and the job fails later with this
   * reason.
   */
  fault?: string | undefined
  /**
   * The progress of the job. `read`: how many characters of the file were processed. `requests`: how many rows were
   * processed. `parts`: how many parts of the result were written.
   */
  read: number
  requests: number
  parts: number
  results: Record<string, number>
  errors?: string[] | undefined
  /**
   * When the job was completed, or the end of the jump of the clock during which the job was completed. The download works for an hour
   * from then on.
   */
  completed_at?: string | undefined
  /** The trace id of the request that created the job. Absent if an earlier version wrote the record. */
  trace_id?: string
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
