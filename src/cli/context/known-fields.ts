/** Validates `--fields` against the output of the operation before it is performed. */
import { usage } from '../../errors.js'
import { itemOutput } from '../../framework/page.js'
import { findUnknownName, type Schema } from '../../framework/schema.js'
import { describeUnknown } from '../output/fields.js'

/** @throws CofferError `usage` for an unknown field, naming the existing ones */
export function requireFields(output: Schema | undefined, fields: readonly string[]): void {
  if (output === undefined) return
  for (const field of fields) {
    const unknown = findUnknownName(itemOutput(output), field)
    if (unknown !== undefined) throw usage(describeUnknown(field, unknown.level, unknown.names))
  }
}
