const PRINTABLE_ASCII = /^[\x20-\x7e\n]*$/

/** Escapes control, format and invisible characters of Unicode, except line breaks. */
function escapeInvisible(text: string, spell: (character: string) => string): string {
  // Most text is printable ASCII, and loading the Unicode tables takes 5 ms.
  if (PRINTABLE_ASCII.test(text)) return text
  return text.replace(/(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, spell)
}

/** Returns one line. Untrusted text must be printed through this function, {@link displayLines} or {@link toJson}. */
export function display(text: string): string {
  return escapeInvisible(text, toVisible).replaceAll('\n', '↵')
}

/** Like {@link display}, but keeps line breaks, and replaces a tab with two spaces. */
export function displayLines(text: string): string {
  return escapeInvisible(text.replaceAll('\r\n', '\n').replaceAll('\t', '  '), toVisible)
}

function toVisible(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`
}

/** Escapes the same characters as {@link display}, as `\uXXXX`. */
export function toJson(value: unknown, spaces = 0): string {
  return escapeInQuotes(JSON.stringify(value, undefined, spaces))
}

/**
 * Escapes the same characters as {@link display}, as `\uXXXX`. Requires: in the given text, these characters occur only
 * within double quotes.
 */
export function escapeInQuotes(text: string): string {
  return escapeInvisible(text, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}

/**
 * A piece that is not wrapped: a span in backticks, an expression, a command up to the next punctuation mark, or a
 * word.
 */
const PIECE = /`[^`]*`\S*|\{\{.*?\}\}\S*|(?:coffer|chmod) .*?(?:[.,:;](?= )|$)|\S+/g

/**
 * Wraps text at `width` columns. Lines that begin with a space or contain two spaces in a row are preformatted, and are
 * not changed.
 */
export function fold(text: string, width: number): string {
  const isKept = (line: string) => /^ |\S {2}/.test(line) || measureWidth(line) <= width
  return text
    .split('\n')
    .map((line) => (isKept(line) ? line : foldLine(line, width)))
    .join('\n')
}

function foldLine(line: string, width: number): string {
  const lines: string[] = []
  for (const [piece] of line.matchAll(PIECE)) {
    const longer = `${lines.at(-1)} ${piece}`
    if (lines.length > 0 && measureWidth(longer) <= width) lines[lines.length - 1] = longer
    else lines.push(piece)
  }
  return lines.join('\n')
}

export function joinLines(text: string): string {
  return text.replaceAll(/(?<!\n)\n(?=\S)/g, ' ')
}

/** For example `1 token`, `2 tokens`, `10,004 tokens`. The locale of the user has no effect on the format. */
export function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

export function formatCount(count: number): string {
  return count.toLocaleString('en')
}

export function indent(text: string, columns: number): string {
  return text.replace(/^/gm, ' '.repeat(columns))
}

/** The width of a displayed text in columns. A skin tone counts as an emoji of its own, as on most terminals. */
export function measureWidth(text: string): number {
  if (PRINTABLE_ASCII.test(text)) return text.length
  let width = 0
  for (const character of text) width += widthOf(character)
  return width
}

/**
 * Characters of East Asian Width W and F (Unicode Annex 11) and emoji take two columns. The emoji of a flag consists
 * of two characters that take one column each.
 */
function widthOf(character: string): number {
  // Combining marks, and Hangul vowels and final consonants, take no column.
  if (/[\p{Mn}\p{Me}\u1160-\u11ff]/u.test(character)) return 0
  const isWide =
    /(?![\u{1f1e6}-\u{1f1ff}])[\p{Emoji_Presentation}\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u
  return isWide.test(character) ? 2 : 1
}

export function truncate(text: string, width: number): string {
  let used = 0
  let end = 0
  let cut = 0
  for (const character of text) {
    used += widthOf(character)
    if (used > width) return `${text.slice(0, cut)}…`
    end += character.length
    if (used < width) cut = end
  }
  return text
}
