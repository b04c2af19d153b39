/** Receives a form with a file. The file is stored while it arrives, so that it is never in memory as a whole. */
import { splitIntoChunks } from '../../domain/document/chunks.js'
import { DEFAULT_CONTENT_TYPE } from '../../domain/document/content-type.js'
import { decodeUtf8, isObject, MAX_JSON_VALUES, parseJson } from '../../domain/json/json.js'
import { collectBytes } from '../../domain/proxy/collect-bytes.js'
import { CofferError, invalid } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { OperationInput } from '../../framework/context.js'
import type { Host } from '../../framework/host.js'
import { perform } from '../../framework/perform.js'
import type { RoutedOperation } from '../../framework/registry.js'
import { readSetting } from '../../framework/setting.js'
import { appendToUpload, discardUpload, documentTooLarge } from '../../operations/document/upload.js'
import type { HttpRequest } from '../exchange.js'
import { checkContentType, readWhole } from '../input.js'
import { type FormPart, readForm } from './read-form.js'

export interface FormRequest {
  host: Host
  caller: Caller
  operation: RoutedOperation
  request: HttpRequest
  traceId: string
}

export interface Received {
  input: OperationInput
  /** Removes the stored file. Call if the operation fails. */
  discard(): Promise<void>
}

const MAX_JSON_BYTES = 256 * 1024
/** The maximum size of the form without its file: the JSON part, headers and boundaries. */
const MAX_OTHER_BYTES = MAX_JSON_BYTES + 64 * 1024
/** An upload holds at most this much memory at a time, including copies. */
const HELD_BYTES = 1024 * 1024

/**
 * @throws CofferError `unsupported_media_type`, `too_large`, `validation`, `unavailable` if other requests use too much
 * memory
 */
export async function receiveForm({
  host,
  caller,
  operation,
  request,
  traceId,
}: FormRequest): Promise<Received> {
  checkContentType(request, operation)
  const boundary = boundaryOf(request)
  const { file, json } = operation.http!.body!.form!
  const limit = await host.store.read((reader) => readSetting(reader, 'documents.limit_bytes'))
  let upload: string | undefined
  let isWhole = false
  let contentType: string | undefined
  let rest: OperationInput | undefined
  const discard = async () => {
    try {
      for (let isDone = upload === undefined; !isDone; ) {
        const { result } = await perform(host, caller, discardUpload, { upload }, traceId)
        isDone = (result as { is_done: boolean }).is_done
      }
    } catch {
      // If the upload cannot be discarded now, it expires, and a sweep then removes it.
    }
  }
  const storeFile = async (part: FormPart) => {
    if (upload !== undefined || isWhole) throw invalid(file, 'may be given only once')
    contentType = part.contentType
    for await (const { bytes, isLast } of splitIntoChunks(part.bytes)) {
      const input = { ...(upload !== undefined && { upload }), bytes, is_last: isLast }
      const { result } = await perform(host, caller, appendToUpload, input, traceId)
      upload = (result as { upload: string }).upload
    }
    isWhole = true
  }
  const take = async (part: FormPart) => {
    if (part.name === file) return storeFile(part)
    if (part.name !== json) throw invalid('form', `has a part other than ${file} and ${json}`)
    if (rest !== undefined) throw invalid(json, 'may be given only once')
    rest = await readJson(part, json)
  }
  request.lease?.take(HELD_BYTES)
  const size = Number(request.headers['content-length'] ?? 0)
  if (size > limit + MAX_OTHER_BYTES) throw documentTooLarge(limit)
  try {
    await readForm(bodyOf(request, limit + MAX_OTHER_BYTES), boundary, take)
  } catch (error) {
    await discard()
    throw error
  }
  const { properties } = operation.input
  const known = Object.entries(rest ?? {}).filter(([name]) => Object.hasOwn(properties, name))
  const given = upload && { [file]: { upload }, content_type: contentType || DEFAULT_CONTENT_TYPE }
  return { input: { ...Object.fromEntries(known), [file]: undefined, ...given }, discard }
}

/** @throws CofferError `too_large`, `validation` */
async function readJson({ bytes }: FormPart, name: string): Promise<OperationInput> {
  const whole = await collectBytes(bytes, MAX_JSON_BYTES)
  if (whole === undefined)
    throw new CofferError('too_large', `${name} is larger than the limit of ${MAX_JSON_BYTES} bytes.`)
  const value = parseJson(decodeUtf8(whole, name), { source: name, maxValues: MAX_JSON_VALUES })
  if (isObject(value)) return value
  throw invalid(name, 'must be a JSON object')
}

async function* bodyOf(request: HttpRequest, limitBytes: number): AsyncGenerator<Uint8Array> {
  if (request.streamBody === undefined) yield await readWhole(request, limitBytes)
  else yield* request.streamBody(limitBytes)
}

/** RFC 2046, 5.1.1: 1 to 70 characters. @throws CofferError `unsupported_media_type` */
function boundaryOf({ headers }: HttpRequest): string {
  const pattern = /;\s*boundary=(?:"([^"\\]{1,70})"|([^\s;"]{1,70}))\s*(?:;|$)/i
  const [, quoted, plain] = pattern.exec(String(headers['content-type'] ?? '')) ?? []
  const boundary = quoted ?? plain
  if (boundary !== undefined && /^[\w'()+,./:=? -]*[\w'()+,./:=?-]$/.test(boundary)) return boundary
  throw new CofferError(
    'unsupported_media_type',
    'The content type of a form needs a boundary of 1 to 70 characters.',
  )
}
