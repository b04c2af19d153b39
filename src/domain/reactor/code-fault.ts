import { CofferError } from '../../errors.js'

/** Line and column start at 1, and are positions in the code as the user wrote it. */
export interface CodeFault {
  line: number
  column: number
  message: string
}

export function describeFault({ line, column, message }: CodeFault): string {
  return `line ${line}, column ${column}: ${message}`
}

/** Requires: `faults` is not empty. `path`: the property with the code. */
export function invalidCode(faults: readonly CodeFault[], path = 'code'): CofferError {
  const texts = faults.map(describeFault)
  return new CofferError('formula_invalid', `The code is not valid at ${texts[0]!.replace(/\.$/, '')}.`, {
    errors: { [path]: texts },
  })
}
