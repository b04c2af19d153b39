/** Command lines that a person pastes into a shell. Pure. */

/** A word as every shell reads it, quoted if necessary. */
export function quoteWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** How to call this program from any directory; `script` is the path that Node was given. */
export function nameProgram(script: string): string {
  return /(^|\/)coffer$/.test(script) ? 'coffer' : `node ${quoteWord(script)}`
}
