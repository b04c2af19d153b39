import { CofferError, validationError } from '../../errors.js'

/** The line of `rawPacket` at which the parser stopped shows whether only the method is unknown. */
export function describeParserError(
  error: Error & { code?: string; rawPacket?: Buffer; bytesParsed?: number },
): CofferError {
  const { code, rawPacket, bytesParsed = 0 } = error
  if (code === 'HPE_HEADER_OVERFLOW')
    return new CofferError('headers_too_large', 'The request line and headers are larger than 16 KiB.')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new CofferError('request_timeout', 'The request took too long to arrive.')
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return new CofferError('too_large', 'The extensions of the chunks are too large.')
  const text = rawPacket?.toString('latin1') ?? ''
  const line = text.slice(text.lastIndexOf('\n', bytesParsed) + 1)
  if (code === 'HPE_INVALID_METHOD' && /^[A-Z]{1,30} \S+ HTTP\//.test(line))
    return new CofferError('method_not_allowed', 'This HTTP method is not supported.')
  return validationError('This is not a valid HTTP/1.1 request.')
}
