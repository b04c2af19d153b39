/** Which fields the answer of an operation may have, so that a name that is none is refused before anything is done. */
import { CofferError } from '../../errors.js'
import { itemOutput } from '../../framework/page.js'
import { findUnknownName, type Schema } from '../../framework/schema.js'
import { describeUnknown } from '../output/fields.js'

/** @throws CofferError `usage` for a field that no answer with this output has, naming those that there are */
export function requireFields(output: Schema | undefined, fields: readonly string[]): void {
  if (output === undefined) return
  for (const field of fields) {
    const unknown = findUnknownName(itemOutput(output), field)
    if (unknown !== undefined)
      throw new CofferError('usage', describeUnknown(field, unknown.level, unknown.names))
  }
}
