/**
 * Quotes a word of a command that the user may paste, if a shell could read the word differently. An attacker
 * may have chosen the word.
 */
export function quoteWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
