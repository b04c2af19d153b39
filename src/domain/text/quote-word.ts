/**
 * Quotes a word of a command to paste, if a shell could read it differently. The word may come from an
 * attacker.
 */
export function quoteWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
