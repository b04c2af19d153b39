import { validationError } from '../../errors.js'

export const DEFAULT_CONTENT_TYPE = 'application/octet-stream'
export const MAX_CONTENT_TYPE_LENGTH = 255

const TOKEN = "[!#$%&'*+.^_`|~A-Za-z0-9-]+"
/** A media type with parameters (RFC 9110, 8.3.1). A quoted value has only visible ASCII characters and spaces. */
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?: ?; ?${TOKEN}=(?:${TOKEN}|"[ !#-\\[\\]-~]*"))*$`)

export function checkContentType(text: string): string {
  if (text.length <= MAX_CONTENT_TYPE_LENGTH && MEDIA_TYPE.test(text)) return text
  throw validationError(
    `must be a media type such as application/pdf, of at most ${MAX_CONTENT_TYPE_LENGTH} ASCII characters`,
  )
}
