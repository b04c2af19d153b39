/** The syntax of token ids. */
import { validationError } from '../../errors.js'

const MIN_TOKEN_ID_LENGTH = 3
const MAX_TOKEN_ID_LENGTH = 400

/** @throws CofferError `validation` for an invalid id; the message does not contain it. Lengths are in code points. */
export function checkTokenId(id: string): void {
  const length = [...id.slice(0, 2 * MAX_TOKEN_ID_LENGTH + 1)].length
  if (length < MIN_TOKEN_ID_LENGTH || length > MAX_TOKEN_ID_LENGTH)
    throw validationError(`must have ${MIN_TOKEN_ID_LENGTH} to ${MAX_TOKEN_ID_LENGTH} characters`)
  if (/[#/\\+?[\]|&=%<>{}^\p{Cc}\p{Cs}]/u.test(id))
    throw validationError('must not contain # / \\ + ? [ ] | & = % < > { } ^ or control characters')
}
