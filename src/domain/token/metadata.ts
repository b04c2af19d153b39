/** Metadata: a bounded map of text to text. It is never masked, so it must not contain sensitive values. */
import type { PropertyErrors } from '../../errors.js'
import { addError } from '../property-errors.js'

const MAX_METADATA_ENTRIES = 50
const MAX_METADATA_NAME_LENGTH = 100
const MAX_METADATA_VALUE_LENGTH = 2000

/** Checks a given map; adds to `errors` under `metadata`. Lengths are in UTF-16 units. */
export function checkMetadata(value: unknown, errors: PropertyErrors): Record<string, string> {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    addError(errors, 'metadata', 'must be an object whose values are strings')
    return {}
  }
  const entries = Object.entries(value)
  if (entries.length > MAX_METADATA_ENTRIES) {
    addError(errors, 'metadata', `must have at most ${MAX_METADATA_ENTRIES} entries`)
    return {}
  }
  for (const [name, text] of entries) {
    if (name.length < 1 || name.length > MAX_METADATA_NAME_LENGTH || /\p{Cc}/u.test(name)) {
      addError(
        errors,
        'metadata',
        `names must have 1 to ${MAX_METADATA_NAME_LENGTH} characters, none a control character`,
      )
    } else if (typeof text !== 'string' || text.length > MAX_METADATA_VALUE_LENGTH) {
      addError(
        errors,
        `metadata.${name}`,
        `must be a string of at most ${MAX_METADATA_VALUE_LENGTH} characters`,
      )
    }
  }
  return value as Record<string, string>
}
