/** Exact conversion of decimal texts to doubles. */

const NUMBER_TEXT = /^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/
/** A double has at most 767 significant digits; longer texts are refused without parsing. */
const MAX_NUMBER_LENGTH = 1100

/**
 * The number that a decimal text means, or undefined if a double cannot hold it exactly (2^53 + 1, 1e400, too many
 * digits). Accepts JSON's number grammar and leading zeros.
 */
export function exactNumber(text: string): number | undefined {
  if (text.length > MAX_NUMBER_LENGTH || !NUMBER_TEXT.test(text)) return undefined
  const value = Number(text)
  if (String(value) === text || (text.length <= 15 && !/[eE]/.test(text))) return value
  return Number.isFinite(value) && significant(text) === significant(String(value)) ? value : undefined
}

/** Canonical form: the digits without surrounding zeros, and the power of ten of the last one. */
function significant(text: string): string {
  const unsigned = text.startsWith('-') ? text.slice(1) : text
  const [mantissa = '', power = '0'] = unsigned.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = whole + fraction
  let first = 0
  let end = digits.length
  while (first < end && digits[first] === '0') first++
  while (end > first && digits[end - 1] === '0') end--
  return first === end
    ? '0'
    : `${digits.slice(first, end)}e${Number(power) - fraction.length + digits.length - end}`
}
