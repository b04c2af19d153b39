/** Documents: files that are stored sealed, with metadata. */

import { CHUNK_BYTES } from '../../domain/document/chunks.js'
import { checkContentType, DEFAULT_CONTENT_TYPE } from '../../domain/document/content-type.js'
import { addError, collect, refuseErrors } from '../../domain/property-errors.js'
import { checkMetadata } from '../../domain/token/token.js'
import type { PropertyErrors } from '../../errors.js'
import { Content, isContent } from '../../framework/content.js'
import type { Session } from '../../framework/context.js'
import { requires } from '../../framework/declaration.js'
import { detached, query } from '../../framework/operation.js'
import { inputSchema } from '../../framework/schema.js'
import { metadata } from '../token/token-attributes.js'
import {
  documentOutput,
  REMOVED_AT_ONCE,
  readChunk,
  removeChunks,
  requireDocument,
  viewDocument,
} from './document.js'
import { appendToUpload, discard, discardUpload, requireReceived, upload } from './upload.js'

/** About this many copies of a chunk are in memory while an answer is sent. */
const COPIES = 8
/** If a deletion is interrupted, the sweep continues the deletion after this time. */
const KEPT_MS = 60 * 60 * 1000

const id = { id: { type: 'string', description: 'The id of the document.' } } as const
const CREATED = `"$(echo '{"document":"Hello"}' | coffer document create -o id)"`

const createDocument = detached({
  name: 'document create',
  summary: 'Store a file as a document.',
  details:
    'Coffer stores the content sealed, and shows it only with the permission documents:reveal. Give\nthe content as a file (--from), or as a text (document).',
  access: requires('documents:create'),
  route: 'POST /documents',
  http: {
    status: 201,
    ignoresIdempotencyKey: true,
    body: { types: ['multipart/form-data'], form: { file: 'document', json: 'request' } },
  },
  log: { operation: 'create', message: 'Document created' },
  input: inputSchema(['document'], {
    document: { content: 'given', description: 'The content: a text, or in the library also bytes.' },
    metadata: { ...metadata, description: 'Data that is not secret. Names may have spaces.' },
    content_type: {
      type: 'string',
      description: `The media type of the content. Default: ${DEFAULT_CONTENT_TYPE}.`,
    },
  }),
  output: documentOutput,
  examples: [
    `echo '{"document":"Hello","content_type":"text/plain","metadata":{"attribute 1":"a"}}' | coffer document create`,
    'printf Hello | coffer document create --from - --content-type text/plain',
  ],
  check({ document, metadata, content_type }) {
    const errors: PropertyErrors = {}
    if (document !== undefined && !isContent(document))
      addError(errors, 'document', 'must be a text, bytes, or an iterable of bytes')
    if (metadata !== undefined) checkMetadata(metadata, errors)
    if (content_type !== undefined) collect(errors, 'content_type', () => checkContentType(content_type))
    refuseErrors(errors)
  },
  async run(session, { document, metadata = {}, content_type = DEFAULT_CONTENT_TYPE }) {
    const isStaged = typeof document === 'object' && 'upload' in document
    const id = isStaged ? document.upload : await upload(session, document)
    try {
      return await session.conclude(async (context) => {
        const { state: _, ...received } = await requireReceived(context, id)
        const record = { ...received, metadata, content_type, created_at: context.date }
        await context.store.replace('document', context.caller.tenant, record)
        context.audit.record('document', id)
        return viewDocument(record)
      })
    } catch (error) {
      await discard(session, id)
      throw error
    }
  },
})

const getDocument = query({
  name: 'document get',
  summary: 'Get the document with this id, without its content.',
  access: requires('documents:read'),
  route: 'GET /documents/{id}',
  log: { operation: 'read', message: 'Document retrieved' },
  input: inputSchema(['id'], id),
  output: documentOutput,
  examples: [`coffer document get ${CREATED}`],
  async run(context, { id }) {
    const record = await requireDocument(context, id)
    context.audit.record('document', id)
    return viewDocument(record)
  },
})

const getData = detached({
  name: 'document data',
  summary: 'Get the content of a document.',
  details: 'The command writes the bytes to standard output or to a file (--to). A terminal gets only text.',
  access: requires('documents:reveal'),
  plaintext: 'refused',
  route: 'GET /documents/{id}/data',
  log: { operation: 'read', message: 'Content of document retrieved' },
  input: inputSchema(['id'], id),
  output: { content: 'returned', description: 'The bytes.' },
  examples: [`coffer document data ${CREATED}`],
  async run(session, { id }) {
    session.limits.reserve(COPIES * CHUNK_BYTES)
    const { record, first } = await session.inUnit(async (context) => {
      const record = await requireDocument(context, id)
      context.audit.record('document', id)
      return { record, first: await readChunk(context, id, 0) }
    })
    return new Content(record.content_type, record.size, readFrom(session, record, first))
  },
})

/** Reads each chunk in its own unit of work. Throws if a chunk is damaged, or if the document is deleted meanwhile. */
async function* readFrom(
  session: Session,
  { id, chunks }: { id: string; chunks: number },
  first: Uint8Array,
): AsyncGenerator<Uint8Array> {
  yield first
  for (let index = 1; index < chunks; index++)
    yield await session.inUnit((context) => readChunk(context, id, index))
}

const deleteDocument = detached({
  name: 'document delete',
  summary: 'Delete a document with its content.',
  access: requires('documents:delete'),
  route: 'DELETE /documents/{id}',
  log: { operation: 'delete', message: 'Document deleted' },
  input: inputSchema(['id'], id),
  cli: { confirmation: 'Its content is deleted too. This deletes the document' },
  examples: [`coffer document delete ${CREATED} --yes`],
  async run(session, { id }) {
    // This unit of work hides the document. The next units of work remove its chunks.
    const { chunks } = await session.conclude(async (context) => {
      const record = { ...(await requireDocument(context, id)), state: 'deleted' as const }
      await context.store.replace('document', context.caller.tenant, record, {
        expires: context.now + KEPT_MS,
      })
      context.audit.record('document', id)
      return record
    })
    for (let end = chunks; end > 0; end -= REMOVED_AT_ONCE) {
      const from = Math.max(0, end - REMOVED_AT_ONCE)
      await session.record(async ({ store, caller }) => {
        const record = await store.get('document', caller.tenant, id)
        if (record?.state !== 'deleted') return
        await removeChunks(store, caller.tenant, { id, chunks: end }, from)
        if (from === 0) await store.remove('document', caller.tenant, id)
      })
    }
    return undefined
  },
})

export const noun = {
  name: 'document',
  summary: 'Store files, such as photos of identity cards',
  operations: [createDocument, getDocument, getData, deleteDocument, appendToUpload, discardUpload],
}
