/**
 * `caret`: the number of characters before the caret in `typed`. Returns the number of characters before the caret in
 * `formatted`.
 */
export function placeCaret(typed: string, caret: number, formatted: string): number {
  if (caret >= typed.length) return formatted.length
  let left = countSigns(typed.slice(0, caret))
  let at = 0
  while (left > 0 && at < formatted.length) {
    left -= countSigns(formatted[at]!)
    at++
  }
  return at
}

/** Separators do not count, because the field adds and removes them. */
const countSigns = (text: string) => text.replaceAll(/[\s\p{P}]/gu, '').length
