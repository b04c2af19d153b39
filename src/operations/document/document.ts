import type { Cipher } from '../../crypto/ports.js'
import type { DocumentRecord } from '../../domain/records/document-record.js'
import { CofferError, damaged } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { component, date, text, textMap, uuid } from '../../framework/output.js'
import type { Infer } from '../../framework/schema.js'
import type { StoreWriter } from '../../storage/store.js'

export const documentOutput = component('Document', ['id', 'content_type', 'created_at'], {
  id: uuid,
  tenant_id: uuid,
  metadata: textMap,
  content_type: text,
  created_by: uuid,
  created_at: date,
})

export type DocumentView = Infer<typeof documentOutput>

export function viewDocument(record: DocumentRecord): DocumentView {
  const { id, tenant_id, metadata, content_type, created_by, created_at } = record
  return { id, tenant_id, metadata, content_type, created_by, created_at }
}

/** @throws CofferError `not_found`, also while the document is being uploaded or deleted */
export async function requireDocument({ store, caller }: Context, id: string): Promise<DocumentRecord> {
  const record = await store.get('document', caller.tenant, id)
  if (record !== undefined && record.state === undefined) return record
  throw new CofferError('not_found', 'There is no document with this id.')
}

interface Place {
  document: string
  index: number
  isLast: boolean
}

/**
 * The seal depends on the document and the index of the chunk, so a moved chunk cannot be opened. The seal also depends
 * on `isLast`, so that a missing end of the document is noticed.
 */
export function sealChunk(
  context: Context,
  { key }: DocumentRecord,
  place: Place,
  bytes: Uint8Array,
): string {
  return Buffer.from(cipherOf(context, key).seal(bytes, associate(place))).toString('base64')
}

/** @throws CofferError `not_found` if the document was deleted, `vault_damaged` */
export async function readChunk(context: Context, id: string, index: number): Promise<Uint8Array> {
  const record = await requireDocument(context, id)
  const chunk = await context.store.get('document_chunk', context.caller.tenant, chunkId(id, index))
  const place = { document: id, index, isLast: index === record.chunks - 1 }
  const bytes =
    chunk && cipherOf(context, record.key).open(Buffer.from(chunk.sealed, 'base64'), associate(place))
  if (bytes !== undefined) return bytes
  throw damaged('A part of a document is missing, or does not open with its key')
}

export const chunkId = (document: string, index: number) => `${document}/${index}`

function cipherOf({ createCipher }: Context, key: string): Cipher {
  return createCipher(new Uint8Array(Buffer.from(key, 'base64')))
}

function associate({ document, index, isLast }: Place): Uint8Array {
  return Buffer.from(JSON.stringify(['document', document, index, isLast]))
}

/** A unit of work removes at most this number of chunks, because each removed chunk is read first. */
export const REMOVED_AT_ONCE = 16

/** Removes the chunks from the index `from` on, and skips missing chunks. */
export async function removeChunks(
  store: StoreWriter,
  tenant: number,
  { id, chunks }: Pick<DocumentRecord, 'id' | 'chunks'>,
  from: number,
): Promise<void> {
  for (let index = from; index < chunks; index++)
    if (await store.isUsed('document_chunk', tenant, chunkId(id, index)))
      await store.remove('document_chunk', tenant, chunkId(id, index))
}

/** If an upload or deletion has expired, removes some chunks. The record is removed together with the last chunk. */
export async function purgeDocument(store: StoreWriter, tenant: number, id: string): Promise<void> {
  const record = await store.purge('document', tenant, id)
  if (record === undefined) return
  const left = Math.max(0, record.chunks - REMOVED_AT_ONCE)
  await removeChunks(store, tenant, record, left)
  // The next sweep continues with the remaining chunks.
  if (left > 0)
    await store.insert('document', tenant, { ...record, chunks: left }, { fresh: true, expires: store.now })
}
