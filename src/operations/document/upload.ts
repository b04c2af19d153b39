/** Uploads the content of a document in chunks. An upload expires unless `document create` makes it a document. */
import { CHUNK_BYTES, type Chunk, splitIntoChunks } from '../../domain/document/chunks.js'
import { DEFAULT_CONTENT_TYPE } from '../../domain/document/content-type.js'
import type { DocumentRecord } from '../../domain/records/document-record.js'
import { CofferError, conflict, invalid } from '../../errors.js'
import { type GivenContent, piecesOf, type StagedUpload } from '../../framework/content.js'
import type { Context, Session } from '../../framework/context.js'
import { requires } from '../../framework/declaration.js'
import { change, detached } from '../../framework/operation.js'
import { object, uuid } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { chunkId, REMOVED_AT_ONCE, removeChunks, sealChunk } from './document.js'

const KEY_BYTES = 32
/** An upload without a new chunk for this time is removed. */
const KEPT_MS = 60 * 60 * 1000

/** Servers and commands upload with this operation, because the input of an operation cannot be a stream. */
export const appendToUpload = detached({
  name: 'document append',
  summary: 'Append a chunk to an upload.',
  access: requires('documents:create'),
  cli: { isInternal: true },
  input: closedInput(['bytes', 'is_last'], {
    upload: { type: 'string', description: 'The id of the upload. Absent for the first chunk.' },
    bytes: { description: 'The bytes of the chunk, or their base64.' },
    is_last: { type: 'boolean', description: 'Whether the content ends with this chunk.' },
  }),
  output: object({ upload: uuid }),
  examples: [],
  run: async (session, { upload, bytes: given, is_last: isLast }) => {
    const bytes = given instanceof Uint8Array ? given : Buffer.from(String(given), 'base64')
    // The chunks are synced together with the document, because a sync for each chunk would take long.
    const id = await session.inUnit((context) => appendChunk(context, upload, { bytes, isLast }), 'soon')
    return { upload: id }
  },
})

export const discardUpload = change({
  name: 'document discard',
  summary: 'Remove an upload that is not a document yet.',
  access: requires('documents:create'),
  cli: { isInternal: true },
  input: closedInput(['upload'], { upload: { type: 'string', description: 'The id of the upload.' } }),
  output: object({ is_done: { type: 'boolean' } }),
  examples: [],
  run: async (context, { upload }) => ({ is_done: await discardSome(context, upload) }),
})

/** Returns the id of the upload. A failed upload is removed. */
export async function upload(
  session: Session,
  content: Exclude<GivenContent, StagedUpload>,
): Promise<string> {
  let id: string | undefined
  try {
    for await (const chunk of splitIntoChunks(piecesOf(content)))
      id = await session.inUnit((context) => appendChunk(context, id, chunk), 'soon')
    return id!
  } catch (error) {
    if (id !== undefined) await discard(session, id)
    throw error
  }
}

export async function discard(session: Session, id: string): Promise<void> {
  try {
    while (!(await session.record((context) => discardSome(context, id))));
  } catch {
    // The error can be ignored, because the upload expires.
  }
}

/** @throws CofferError `not_found` if no complete upload of this caller has this id */
export async function requireReceived(context: Context, id: string): Promise<DocumentRecord> {
  const record = await findUpload(context, id)
  if (record?.state === 'received') return record
  throw new CofferError('not_found', 'There is no complete upload with this id, or it has expired.')
}

async function appendChunk(
  context: Context,
  upload: string | undefined,
  { bytes, isLast }: Chunk,
): Promise<string> {
  const { store, caller, now } = context
  const before = upload === undefined ? await begin(context) : await requireUpload(context, upload)
  if (bytes.length > CHUNK_BYTES || (!isLast && bytes.length < CHUNK_BYTES))
    throw invalid('bytes', `must be ${CHUNK_BYTES} bytes, except in the last chunk`)
  const size = before.size + bytes.length
  const limit = await context.setting('documents.limit_bytes')
  if (size > limit) throw documentTooLarge(limit)
  const { id, chunks: index } = before
  const sealed = sealChunk(context, before, { document: id, index, isLast }, bytes)
  await store.insert('document_chunk', caller.tenant, { id: chunkId(id, index), sealed }, { fresh: true })
  const state = isLast ? ('received' as const) : ('uploading' as const)
  const after = { ...before, state, size, chunks: index + 1 }
  const expires = now + KEPT_MS
  if (upload === undefined) await store.insert('document', caller.tenant, after, { fresh: true, expires })
  else await store.replace('document', caller.tenant, after, { expires })
  return id
}

export function documentTooLarge(limit: number): CofferError {
  return new CofferError('too_large', `The document is larger than the limit of ${limit} bytes.`)
}

async function begin(context: Context): Promise<DocumentRecord> {
  const { caller, random, date } = context
  return {
    id: context.createUuid(),
    tenant_id: (await context.tenant()).id,
    state: 'uploading',
    content_type: DEFAULT_CONTENT_TYPE,
    metadata: {},
    size: 0,
    chunks: 0,
    key: Buffer.from(random.bytes(KEY_BYTES)).toString('base64'),
    created_by: caller.actor.id,
    created_at: date,
  }
}

async function requireUpload(context: Context, id: string): Promise<DocumentRecord> {
  const record = await findUpload(context, id)
  if (record === undefined)
    throw new CofferError('not_found', 'There is no upload with this id, or it has expired.')
  if (record.state === 'received') throw conflict('This upload is complete already.')
  return record
}

/** Callers find only their own uploads. */
async function findUpload({ store, caller }: Context, id: string): Promise<DocumentRecord | undefined> {
  const record = await store.get('document', caller.tenant, id)
  const isUpload = record?.state === 'uploading' || record?.state === 'received'
  return isUpload && record.created_by === caller.actor.id ? record : undefined
}

/** Removes some chunks. The record is removed together with the last chunk. Returns true if nothing is left. */
async function discardSome(context: Context, id: string): Promise<boolean> {
  const { store, caller, now } = context
  const record = await findUpload(context, id)
  if (record === undefined) return true
  const left = Math.max(0, record.chunks - REMOVED_AT_ONCE)
  await removeChunks(store, caller.tenant, record, left)
  if (left === 0) await store.remove('document', caller.tenant, id)
  // The upload is no longer complete, because its last chunk was removed.
  else {
    const after = { ...record, state: 'uploading' as const, chunks: left }
    await store.replace('document', caller.tenant, after, { expires: now + KEPT_MS })
  }
  return left === 0
}
