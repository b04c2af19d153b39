/** E-mail addresses: an addr-spec of RFC 5322 (3.4.1) without display name, comments or folding white space. */
import { validationError } from '../../errors.js'

/** 64 characters before the at sign and 255 after it (RFC 5321, 4.5.3.1). */
export const EMAIL_LIMIT = 320

const ATEXT = "[A-Za-z0-9!#$%&'*+\\-/=?^_`{|}~]+"
const DOT_ATOM = `${ATEXT}(?:\\.${ATEXT})*`
/** Quoted string: spaces and visible ASCII, with a `\` before `"` and `\`; no tabs, no folding. */
const QUOTED = '"(?:[ !#-\\[\\]-~]|\\\\[ -~])*"'
const LITERAL = '\\[[!-Z^-~]*\\]'
const ADDRESS = new RegExp(`^(?:${DOT_ATOM}|${QUOTED})@(?:${DOT_ATOM}|${LITERAL})$`)

/** @throws CofferError `validation` if the text is not an address of at most {@link EMAIL_LIMIT} characters */
export function checkEmail(text: string): void {
  if (text.length > EMAIL_LIMIT) throw validationError(`must have at most ${EMAIL_LIMIT} characters`)
  if (/[^\x20-\x7e]/.test(text))
    throw validationError(
      'must be plain ASCII without control characters; write an international domain in its xn-- form',
    )
  if (!ADDRESS.test(text))
    throw validationError('must be an e-mail address such as ada@example.com (RFC 5322)')
}

/** The form in which addresses are compared. RFC 5321 allows a case-sensitive local part; no server in use has one. */
export function normalizeEmail(email: string): string {
  return email.toLowerCase()
}
