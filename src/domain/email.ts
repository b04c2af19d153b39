/**
 * E-mail addresses as RFC 5322 (3.4.1) spells them: one plain addr-spec, without a display name, comments or folding.
 * It does not know whether anybody reads mail there.
 */
import { CofferError } from '../errors.js'

/** 64 before the at sign, 255 behind it (RFC 5321, 4.5.3.1). */
export const EMAIL_LIMIT = 320

const ATEXT = "[A-Za-z0-9!#$%&'*+\\-/=?^_`{|}~]+"
const DOT_ATOM = `${ATEXT}(?:\\.${ATEXT})*`
/** Visible ASCII but `"` and `\`, or one of anything visible behind a `\`; blanks too, but neither tabs nor folds. */
const QUOTED = '"(?:[ !#-\\[\\]-~]|\\\\[ -~])*"'
const LITERAL = '\\[[!-Z^-~]*\\]'
const ADDRESS = new RegExp(`^(?:${DOT_ATOM}|${QUOTED})@(?:${DOT_ATOM}|${LITERAL})$`)

/** @throws CofferError `validation` for anything but an address of at most {@link EMAIL_LIMIT} characters */
export function checkEmail(text: string): void {
  if (text.length > EMAIL_LIMIT)
    throw new CofferError('validation', `must have at most ${EMAIL_LIMIT} characters`)
  if (/[^\x20-\x7e]/.test(text))
    throw new CofferError(
      'validation',
      'must be plain ASCII without control characters; write an international domain in its xn-- form',
    )
  if (!ADDRESS.test(text))
    throw new CofferError('validation', 'must be an e-mail address such as ada@example.com (RFC 5322)')
}

/** What two spellings of one mailbox share. Servers may tell capitals apart before the at sign; none in use does. */
export function normalizeEmail(email: string): string {
  return email.toLowerCase()
}
