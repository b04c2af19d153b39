const MAX_LETTERS = 50
/**
 * A shorter text is not compared with names letter by letter, but only by its pairs of letters and by the initials of a
 * name.
 */
const MIN_LETTERS = 3
const MIN_SHARE = 0.52

export function suggestName(text: string, names: readonly string[]): string {
  const name = findNearest(text, names)
  return name === undefined ? '' : `; did you mean ${name}?`
}

export function findNearest(text: string, names: readonly string[]): string | undefined {
  const pairs = (word: string) => new Set(Array.from(word.slice(1), (letter, at) => word[at]! + letter))
  const given = pairs(text.slice(0, MAX_LETTERS).toLowerCase())
  let best = { share: 0, name: '' }
  for (const name of names) {
    const own = pairs(name.toLowerCase())
    // For example, `ssn` stands for `social_security_number`.
    const initials = name.includes('_') && name.replaceAll(/([a-z])[a-z]*(?:_|$)/g, '$1')
    if (isSlip(text, name) || initials === text) return name
    const share = (2 * [...own].filter((pair) => given.has(pair)).length) / (own.size + given.size)
    if (share > best.share) best = { share, name }
  }
  return best.share < MIN_SHARE ? undefined : best.name
}

function isSlip(text: string, name: string): boolean {
  if (text.length < MIN_LETTERS || Math.abs(text.length - name.length) > 1) return false
  let start = 0
  while (start < name.length && text[start] === name[start]) start++
  const [given, own] = [text.slice(start), name.slice(start)]
  const swapped = (given[1] ?? '') + (given[0] ?? '') + given.slice(2)
  return swapped === own || [given.slice(1), given].some((one) => [own.slice(1), own].includes(one))
}
