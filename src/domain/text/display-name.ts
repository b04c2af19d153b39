export const MAX_NAME_LENGTH = 200

/**
 * Allows one line without control characters, because names appear in tables, prompts, mails and logs. Needs the flag
 * u.
 */
export const NAME_PATTERN = '^[^\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}]*$'

/**
 * Ignores upper and lower case. `*` matches any text. A term without `*` matches any part of the name. The running time
 * is at most proportional to the product of both lengths.
 */
export function matchesName(name: string, term: string): boolean {
  const text = name.toLowerCase()
  const pattern = term.toLowerCase()
  if (!pattern.includes('*')) return text.includes(pattern)
  const [first = '', ...parts] = pattern.split('*')
  const last = parts.pop() ?? ''
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const part of parts) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}
