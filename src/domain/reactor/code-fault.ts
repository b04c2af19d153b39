/** Errors in the text of code. */
import { CofferError } from '../../errors.js'

/** Why code does not compile. Line and column are positions in the code as the user wrote it, and start at 1. */
export interface CodeFault {
  line: number
  column: number
  message: string
}

export function describeFault({ line, column, message }: CodeFault): string {
  return `line ${line}, column ${column}: ${message}`
}

/**
 * Returns the error for code that does not compile. Requires: there is at least one fault. `path`: the path
 * of the property with the code.
 */
export function invalidCode(faults: readonly CodeFault[], path = 'code'): CofferError {
  const texts = faults.map(describeFault)
  return new CofferError('formula_invalid', `The code is not valid at ${texts[0]!.replace(/\.$/, '')}.`, {
    errors: { [path]: texts },
  })
}
