/** Words of command lines that a person pastes: names of files, columns and things may be anybody's. */

/** A word as every shell reads it, quoted if necessary. */
export function quoteWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
