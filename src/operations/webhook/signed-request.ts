import type { Signer } from '../../crypto/ports.js'

/** At most this many characters of an answer are stored. */
export const MAX_ANSWER_CHARACTERS = 2000

/** `text`: the body of the request. */
export function signedHeaders(signer: Signer, prefix: string, text: string): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': 'coffer',
    [`${prefix}-signature-version`]: 'v1',
    [`${prefix}-signature`]: signer.sign(text),
  }
}
