/** Escapes untrusted text for a terminal, measures, wraps and truncates it. Pure. */

const PRINTABLE_ASCII = /^[\x20-\x7e\n]*$/

/**
 * Spells controls (C0, DEL, C1) but line breaks, format characters (bidi overrides and isolates, zero-width, tags), line and
 * paragraph separators, lone surrogates, and other characters that Unicode defines as invisible.
 */
function escapeInvisible(text: string, spell: (character: string) => string): string {
  // Most text has none, and the tables of Unicode take a command 5 ms to load.
  if (PRINTABLE_ASCII.test(text)) return text
  return text.replace(/(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, spell)
}

/**
 * Text as one line: a line break becomes `↵`; characters that move the cursor, change colours or are invisible become
 * `\u{..}`. Contract: untrusted text is printed only through this, {@link displayLines} or {@link toJson}.
 */
export function display(text: string): string {
  return escapeInvisible(text, toVisible).replaceAll('\n', '↵')
}

/** Like {@link display}, but keeps line breaks and replaces a tab by two spaces. */
export function displayLines(text: string): string {
  return escapeInvisible(text.replaceAll('\r\n', '\n').replaceAll('\t', '  '), toVisible)
}

function toVisible(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`
}

/** JSON, with `spaces` 0 on one line. Escapes the same characters as {@link display}, as `\uXXXX`. */
export function toJson(value: unknown, spaces = 0): string {
  return escapeInvisible(JSON.stringify(value, undefined, spaces), toJsonEscape)
}

function toJsonEscape(character: string): string {
  return Array.from({ length: character.length }, (_, at) => {
    return `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`
  }).join('')
}

/** Indented JSON, in which objects and arrays that fit `width` columns stay on one line. */
export function layOutJson(value: unknown, width: number): string {
  const oneLine = toJson(value)
  if (typeof value !== 'object' || value === null || measureWidth(oneLine) <= width) return oneLine
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}']
  const members = Array.isArray(value)
    ? value.map((member) => layOutJson(member, width - 3))
    : Object.entries(value).map(([name, member]) => {
        const label = `${toJson(name)}: `
        return label + layOutJson(member, width - 3 - measureWidth(label))
      })
  if (members.length === 0) return oneLine
  return `${open}\n${members.map((member) => indent(member, 2)).join(',\n')}\n${close}`
}

/** A span in backticks, an expression, a command to the end of its sentence, or a word: unbroken, to be pasted. */
const PIECE = /`[^`]*`\S*|\{\{.*?\}\}\S*|(?:coffer|chmod) .*?(?:[.,:;](?= )|$)|\S+/g

/** Wraps text at `width` columns. A preformatted line (it begins with a space or has two in a row) is unchanged. */
export function fold(text: string, width: number): string {
  return text
    .split('\n')
    .map((line) => (/^ |\S {2}/.test(line) || measureWidth(line) <= width ? line : foldLine(line, width)))
    .join('\n')
}

function foldLine(line: string, width: number): string {
  let folded = ''
  let used = 0
  for (const [piece] of line.matchAll(PIECE)) {
    const wide = measureWidth(piece)
    const isFirst = folded === ''
    const fits = used + 1 + wide <= width
    folded += isFirst ? piece : `${fits ? ' ' : '\n'}${piece}`
    used = isFirst || !fits ? wide : used + 1 + wide
  }
  return folded
}

/** Below it a text goes under its term instead of beside it. */
const LEAST_TEXT_COLUMNS = 20

/** A line of help: `begin`, which has a term and the space after it, and the text that stays beside it. */
export function foldRow(begin: string, text: string, width: number): string {
  const wide = measureWidth(begin)
  if (wide + LEAST_TEXT_COLUMNS > width && wide + measureWidth(text) > width)
    return `${begin.trimEnd().replaceAll(/(?<=\S) {3,}/g, '  ')}\n${indent(fold(text, width - 6), 6)}`
  return begin + indent(fold(text, width - wide), wide).slice(wide)
}

/** Makes one line of each paragraph, which {@link foldHelp} then folds to the width of the terminal. */
export function joinLines(text: string): string {
  return text.replaceAll(/(?<!\n)\n(?=\S)/g, ' ')
}

/** Folds paragraphs and rows of help. Lines that a person pastes are unchanged: they begin with `  $`. */
export function foldHelp(text: string, width: number): string {
  return text
    .split('\n')
    .map((line) => {
      const [, begin, rest] = /^( {2}(?!\$).*\S {2,})(\S.*)$/.exec(line) ?? []
      return begin === undefined ? fold(line, width) : foldRow(begin, rest!, width)
    })
    .join('\n')
}

/** `1 token`, `2 tokens`. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

export function indent(text: string, columns: number): string {
  return text.replace(/^/gm, ' '.repeat(columns))
}

/** The width of displayed text in columns. Skin tones count as separate emoji, as on most terminals. */
export function measureWidth(text: string): number {
  return measureUpTo(text, Number.POSITIVE_INFINITY)
}

/** The width, or `most` if it is larger; stops measuring there. */
export function measureUpTo(text: string, most: number): number {
  if (/^[\x20-\x7e]*$/.test(text)) return Math.min(text.length, most)
  let width = 0
  for (const character of text) {
    width += widthOf(character)
    if (width >= most) return most
  }
  return width
}

/**
 * Combining marks, Hangul vowels and final consonants have no width. Two columns: East Asian Width W and F (Unicode Annex
 * 11), and emoji; a flag is two characters of one column.
 */
function widthOf(character: string): number {
  if (/[\p{Mn}\p{Me}\u1160-\u11ff]/u.test(character)) return 0
  const isWide =
    /(?![\u{1f1e6}-\u{1f1ff}])[\p{Emoji_Presentation}\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u
  return isWide.test(character) ? 2 : 1
}

/** Truncates text to `width` columns (at least 1), ending with `…`. */
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
