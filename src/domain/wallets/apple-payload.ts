/** Checks the form of Apple Pay payloads, whose content is encrypted. */
import { isObject } from '../json/json.js'

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** Accepts the version `EC_v1`. Payloads with RSA are not supported. */
export function isApplePayload(payload: Readonly<Record<string, unknown>>): boolean {
  const { version, data, signature, header } = payload
  return (
    version === 'EC_v1' &&
    isBase64(data) &&
    isBase64(signature) &&
    isObject(header) &&
    isBase64(header.ephemeralPublicKey)
  )
}

function isBase64(value: unknown): boolean {
  return typeof value === 'string' && value.length % 4 !== 1 && BASE64.test(value)
}
