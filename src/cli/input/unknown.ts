/** Tells of properties in JSON that an operation ignores, which may be misspelled. */
import { isObject } from '../../domain/json/json.js'
import { suggestName } from '../../domain/nearest.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import type { Schema } from '../../framework/schema.js'
import { display, truncate } from '../output/display.js'
import { printNotice } from '../output/output.js'
import type { Terminal } from '../output/terminal.js'

/** Names that one command tells of, and the columns of each. */
const MOST_TOLD = 10
const MOST_COLUMNS = 50

/** Tells of each name in `bodies` of `definition` once, and of none that its answers have. */
export function createUnknownNotice(terminal: Terminal, definition: RegisteredOperation) {
  const { name: command, input, output, sentBody } = definition
  const answered: object = (output?.type === 'object' ? output.properties : undefined) ?? {}
  const told = new Set<string>()
  /** Adds what is told to `notices`. */
  const collect = (notices: string[], schema: Schema, value: unknown, others: object): void => {
    if (told.size === MOST_TOLD) return
    if (schema.type === 'array' && Array.isArray(value))
      for (const item of value) collect(notices, schema.items, item, others)
    if (schema.type !== 'object' || !isObject(value)) return
    const { properties, additionalProperties, refersTo } = schema
    // Any other object is a map, or refuses what it does not know; and what is referred to may be given whole.
    if (properties === undefined || additionalProperties !== true || refersTo !== undefined) return
    for (const [name, member] of Object.entries(value)) {
      if (Object.hasOwn(properties, name)) collect(notices, properties[name]!, member, {})
      else if (!Object.hasOwn(others, name) && !told.has(name) && told.size < MOST_TOLD) {
        told.add(name)
        const shown = truncate(display(name), MOST_COLUMNS)
        const nearest = suggestName(name, Object.keys(properties)) || '.'
        notices.push(`Ignored: ${command} takes no property "${shown}"${nearest}`)
      }
    }
  }
  return async (bodies: readonly unknown[]): Promise<void> => {
    const notices: string[] = []
    if (sentBody === undefined) collect(notices, { type: 'array', items: input }, bodies, answered)
    for (const notice of notices) await printNotice(terminal, notice)
  }
}
