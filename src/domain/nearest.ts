/** Finds the name that misspelled text means. Pure. */

const MOST_LETTERS = 50
/** Of the pairs of letters of both. */
const LEAST_SHARE = 0.52

/** `; did you mean …?` with the name that shares most pairs of letters with `text`; empty where none is near. */
export function suggestName(text: string, names: readonly string[]): string {
  const pairs = (word: string) => new Set(Array.from(word.slice(1), (letter, at) => word[at]! + letter))
  const given = pairs(text.slice(0, MOST_LETTERS).toLowerCase())
  let best = { share: 0, name: '' }
  for (const name of names) {
    const own = pairs(name)
    const share = (2 * [...own].filter((pair) => given.has(pair)).length) / (own.size + given.size)
    if (share > best.share) best = { share, name }
  }
  return best.share < LEAST_SHARE ? '' : `; did you mean ${best.name}?`
}
