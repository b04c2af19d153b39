/** The text of a cell of the access matrix, for terminals and the dashboard. */
import { isObject } from '../json/json.js'

export interface SeenCell {
  sees: 'plain' | 'masked' | 'redacted' | 'none'
  example?: unknown
}

/** The words for what a caller sees, shown together with the value. */
export const SEEN_WORDS = {
  plain: 'plain',
  masked: 'masked',
  redacted: 'redacted',
  none: 'no access',
} as const satisfies Record<SeenCell['sees'], string>

/** The members of structured data that stand for the whole value in one line. */
const HEADLINES = ['number', 'account_number']

/**
 * The value in one line, or the reason why the caller sees no value. `mask`: whether the mask of the token can be
 * applied to the example.
 */
export function describeSeen(
  { sees, example }: SeenCell,
  mask: 'shown' | 'none' | 'other',
): string | undefined {
  if (example !== undefined) return headlineOf(example)
  if (sees !== 'masked') return undefined
  return mask === 'none' ? 'hidden: no mask' : 'as its mask shows'
}

export function headlineOf(example: unknown): string {
  if (!isObject(example)) return typeof example === 'string' ? example : JSON.stringify(example)
  const name = HEADLINES.find((each) => example[each] !== undefined) ?? Object.keys(example)[0]
  return name === undefined ? '{}' : headlineOf(example[name])
}
