/** Tells of properties in JSON that an operation ignores, which may be misspelled. */
import { isObject } from '../../domain/json/json.js'
import { suggestName } from '../../domain/text/nearest.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import { display, truncate } from '../output/display.js'
import { printNotice } from '../output/output.js'
import type { Terminal } from '../output/terminal.js'

/** Names that one command tells of, and the columns of each. */
const MOST_TOLD = 10
const MOST_COLUMNS = 50

/** Tells of each name in `bodies` of `definition` once, and of none that its answers have: those may be given back. */
export function createUnknownNotice(terminal: Terminal, definition: RegisteredOperation) {
  const { name: command, input, output, sentBody } = definition
  const names = Object.keys(input.properties ?? {})
  const answered = Object.keys((output?.type === 'object' && output.properties) || {})
  const passed = new Set([...names, ...answered])
  const isOpen = input.additionalProperties === true && sentBody === undefined
  let left = isOpen ? MOST_TOLD : 0
  return async (bodies: readonly unknown[]): Promise<void> => {
    for (const body of bodies)
      for (const name in isObject(body) ? body : {}) {
        if (passed.has(name) || left-- <= 0) continue
        passed.add(name)
        const shown = truncate(display(name), MOST_COLUMNS)
        const nearest = suggestName(name, names) || '.'
        await printNotice(terminal, `Ignored: ${command} takes no property "${shown}"${nearest}`)
      }
  }
}
