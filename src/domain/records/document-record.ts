import type { TenantEntity } from './token-record.js'

/**
 * A document. While the record has a `state`, nobody can see the document, and the record has an expiry. When the
 * record expires, the sweep also removes the chunks of the document. Therefore the chunks of an interrupted upload or
 * deletion do not remain.
 */
export interface DocumentRecord extends TenantEntity {
  /** `received`: the whole content has arrived, but the document is not created yet. */
  state?: 'uploading' | 'received' | 'deleted'
  content_type: string
  metadata: Record<string, string>
  /** The size of the content, in bytes. */
  size: number
  /** The number of chunks. */
  chunks: number
  /** The key of the chunks: 32 random bytes, base64. */
  key: string
}

/**
 * A part of the content of a document. The id of a chunk is the id of the document, a slash and the index of the
 * chunk.
 */
export interface DocumentChunkRecord {
  id: string
  /** The bytes, sealed with the key of the document, base64. */
  sealed: string
}
