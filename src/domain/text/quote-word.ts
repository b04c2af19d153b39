/** Quotes a word of a command to paste, if any shell would read it differently; anybody may have chosen it. */
export function quoteWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
