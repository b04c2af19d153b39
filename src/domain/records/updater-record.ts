import type { TenantEntity } from './token-record.js'

export type UpdaterStatus = 'pending' | 'processing' | 'completed' | 'failed'

/** A batch job. Until the file is uploaded, the record expires at `expires_at`. */
export interface UpdaterJobRecord extends TenantEntity {
  status: UpdaterStatus
  /** `waiting`: the delivery queue processes the file at `due_at`. */
  state?: 'waiting' | undefined
  due_at?: string | undefined
  expires_at: string
  /** Secrets in the addresses for the upload and the download, base64url. */
  upload_secret: string
  download_secret: string
  /** The type of the caller in `created_by`. New tokens are created in the name of this caller. */
  actor_type: 'application' | 'user' | 'system'
  /** Whether the caller that created the job was in no-reveal mode. */
  no_reveal?: true | undefined
  deduplicates?: boolean | undefined
  result_version: '1' | '1.1' | '1.2'
  /** Why the uploaded file cannot be read. The job fails later with this reason. */
  fault?: string | undefined
  /**
   * How many characters of the file (`read`) and rows (`requests`) are processed, and how many parts of the result are
   * written (`parts`).
   */
  read: number
  requests: number
  parts: number
  results: Record<string, number>
  errors?: string[] | undefined
  /**
   * When the job was completed. If the job was completed during a jump of the clock, this is the end of the jump. The
   * download works for an hour from this time.
   */
  completed_at?: string | undefined
  /** Absent if an earlier version wrote the record. */
  trace_id?: string
}

/** The uploaded file, or the rows of the result that one unit of work wrote. */
export interface UpdaterPartRecord {
  /** `JOB/request`, or `JOB/` and the number of the part. */
  id: string
  job_id: string
  text: string
  state?: undefined
  due_at?: string
}
