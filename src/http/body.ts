/** The body of a request: content type, size and JSON. */
import { decodeUtf8, isObject, MAX_JSON_VALUES, parseJson } from '../domain/json/json.js'
import { CofferError, validationError } from '../errors.js'
import type { AnyOperation } from '../framework/operation.js'
import type { HttpRequest } from './exchange.js'
import { readHeader } from './headers.js'

const JSON_MEDIA_TYPE = 'application/json'

/** Content type, size and JSON, in this order. @throws CofferError `unsupported_media_type`, `too_large`, `validation` */
export async function readJsonBody(
  request: HttpRequest,
  definition: AnyOperation,
  limitBytes: number,
): Promise<unknown> {
  checkContentType(request, definition)
  const bytes = await request.readBody(limitBytes)
  if (bytes === undefined)
    throw new CofferError('too_large', `The body is larger than the limit of ${limitBytes} bytes.`)
  await request.lease?.arrive()
  if (bytes.length === 0) throw validationError('The request needs a JSON body.')
  return parseJson(decodeUtf8(bytes, 'the request body'), {
    source: 'the request body',
    mostValues: MAX_JSON_VALUES,
  })
}

/** The properties of the body, to be merged with path and query. @throws CofferError `validation` */
export function placeBody(value: unknown, { wholeBody, sentBody }: AnyOperation): Record<string, unknown> {
  if (wholeBody !== undefined) return { [wholeBody]: value }
  if (isObject(value)) return sentBody === undefined ? value : { ...value, [sentBody]: value }
  throw validationError('The request body must be a JSON object.')
}

/** A missing content type counts as JSON, if the operation accepts JSON. */
function checkContentType(
  { headers }: HttpRequest,
  { contentType: only, alsoContentType }: AnyOperation,
): void {
  const wanted = only ?? JSON_MEDIA_TYPE
  const encoding = readHeader(headers, 'content-encoding')?.trim().toLowerCase()
  if (encoding !== undefined && encoding !== '' && encoding !== 'identity')
    throw unsupported('Compressed bodies are not supported. Send the body without Content-Encoding.')
  const header = readHeader(headers, 'content-type')
  if (header === JSON_MEDIA_TYPE && only === undefined) return
  if (header === undefined && only === undefined) return
  const [type = '', ...parameters] = (header ?? '').split(';').map((part) => part.trim().toLowerCase())
  if (type !== wanted && type !== alsoContentType) throw unsupported(`The body must be sent as ${wanted}.`)
  for (const parameter of parameters) {
    const [name, value = ''] = parameter.split('=').map((part) => part.trim())
    if (name === 'charset' && !['utf-8', 'utf8'].includes(value.replaceAll('"', '')))
      throw unsupported('The body must be UTF-8.')
  }
}

function unsupported(message: string): CofferError {
  return new CofferError('unsupported_media_type', message)
}
