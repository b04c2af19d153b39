import type { TenantEntity } from './token-record.js'

/**
 * A record with a `state` is hidden and expires. At its expiry, the sweep also removes the chunks of the interrupted
 * upload or deletion.
 */
export interface DocumentRecord extends TenantEntity {
  /** `received`: the whole content has arrived, but the document is not created yet. */
  state?: 'uploading' | 'received' | 'deleted'
  content_type: string
  metadata: Record<string, string>
  /** In bytes. */
  size: number
  chunks: number
  /** The key of the chunks: 32 random bytes, base64. */
  key: string
}

/** The id is the id of the document, a slash and the index of the chunk. */
export interface DocumentChunkRecord {
  id: string
  /** Sealed with the key of the document, base64. */
  sealed: string
}
