/** Command lines that a person pastes into a shell. Pure. */
import { quoteWord } from '../../domain/text/quote-word.js'

/** How to call this program from any directory; `script` is the path that Node was given. */
export function formatProgram(script: string): string {
  return /(^|\/)coffer$/.test(script) ? 'coffer' : `node ${quoteWord(script)}`
}
