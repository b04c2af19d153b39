/** Checks only the outer form of PKCS#12 files, because their content is often encrypted with outdated ciphers. */
import { validationError } from '../../errors.js'

const MAX_FILE_BYTES = 64 * 1024
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const RULE = `must be a PKCS#12 file of at most ${MAX_FILE_BYTES} bytes, as base64`
const SEQUENCE = 0x30
/** This length byte means that two zeros end the sequence. */
const INDEFINITE = 0x80
/** The version of a PKCS#12 file is the integer 3, which is the first element of the outer sequence. */
const VERSION = [0x02, 0x01, 0x03]

export function readCertificateFile(text: string): Uint8Array<ArrayBuffer> {
  if (text.length <= Math.ceil(MAX_FILE_BYTES / 3) * 4 && BASE64.test(text)) {
    const bytes = Uint8Array.from(Buffer.from(text, 'base64'))
    if (bytes.length <= MAX_FILE_BYTES && isPkcs12(bytes)) return bytes
  }
  throw validationError(RULE)
}

/** Some programs write sequences of indefinite length, which end with two zeros. */
function isPkcs12(bytes: Uint8Array): boolean {
  const [tag, first = 0] = bytes
  const lengthBytes = first < INDEFINITE ? 0 : first - INDEFINITE
  const begin = 2 + lengthBytes
  const hasVersion = VERSION.every((byte, at) => bytes[begin + at] === byte)
  if (tag !== SEQUENCE || lengthBytes > 3 || !hasVersion) return false
  if (first === INDEFINITE) return bytes.at(-2) === 0 && bytes.at(-1) === 0
  let length = lengthBytes === 0 ? first : 0
  for (const byte of bytes.subarray(2, begin)) length = length * 256 + byte
  return bytes.length === begin + length
}
