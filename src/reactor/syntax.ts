/** Checks the syntax of code when it is stored. The code does not run. */
import { compileFunction } from 'node:vm'
import type { SyntaxFault } from '../framework/ports/linker.js'

/** Strict mode, as in the sandbox. */
const STRICT = '"use strict";'

/** The sandbox may refuse more: it finds the rest when it loads the code. */
export function findSyntaxFault(code: string): SyntaxFault | undefined {
  if (code.startsWith('#!')) return undefined
  try {
    compileFunction(STRICT + code, [], { filename: 'reactor.js' })
    return undefined
  } catch (error) {
    // Text that is nested too deeply is no SyntaxError. The sandbox then decides.
    if (!(error instanceof SyntaxError)) return undefined
    const [, line] = /^reactor\.js:(\d+)/.exec(error.stack ?? '') ?? []
    return { message: error.message, ...(line !== undefined && { line: Number(line) }) }
  }
}
