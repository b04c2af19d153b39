import { isObject } from '../json/json.js'

export interface SeenCell {
  sees: 'plain' | 'masked' | 'redacted' | 'none'
  example?: unknown
}

export const SEEN_WORDS = {
  plain: 'plain',
  masked: 'masked',
  redacted: 'redacted',
  none: 'no access',
} as const satisfies Record<SeenCell['sees'], string>

/** Structured data is shown as one member: the first of these, or the first member if none of these exists. */
const HEADLINES = ['number', 'account_number']

/** Returns the example in one line. If a masked value has no example, returns a note about the mask. */
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
