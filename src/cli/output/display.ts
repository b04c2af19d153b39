/**
 * How text that nobody vouches for is made safe to look at, measured and cut. Pure; it knows nothing of streams,
 * colours or what the text means.
 */

/**
 * Controls (C0, DEL, C1), format characters (bidi overrides and isolates, zero-width, tags), line and paragraph
 * separators, lone surrogates, and whatever else Unicode says is drawn as nothing.
 */
const UNSEEN = '\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}'
const ANY_UNSEEN = new RegExp(`[${UNSEEN}]`, 'gu')
const UNSEEN_BUT_NEWLINE = new RegExp(`(?!\\n)[${UNSEEN}]`, 'gu')

/**
 * Text as one harmless line: a line break becomes `↵`, everything else that would move the cursor, change colours or
 * hide becomes `\u{..}`. Every string that is not our own goes through here (or {@link displayLines}, or JSON) first.
 */
export function display(text: string): string {
  return text.replace(ANY_UNSEEN, (character) => (character === '\n' ? '↵' : toVisible(character)))
}

/** The same, but line breaks (`\n`, `\r\n`) stay and a tab becomes two spaces: for code and messages. */
export function displayLines(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll('\t', '  ').replace(UNSEEN_BUT_NEWLINE, toVisible)
}

function toVisible(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`
}

/**
 * The JSON of a value; `spaces` 0 is one line. What {@link display} would make visible is spelled `\uXXXX`, which
 * reads back as the same value and cannot touch a terminal.
 */
export function toJson(value: unknown, spaces = 0): string {
  return JSON.stringify(value, undefined, spaces).replace(UNSEEN_BUT_NEWLINE, toJsonEscape)
}

function toJsonEscape(character: string): string {
  return Array.from({ length: character.length }, (_, at) => {
    return `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`
  }).join('')
}

/**
 * JSON for the eye: an object or array stays on one line when that fits `width` columns, else it opens and its members
 * are laid out in the same way, two columns further in.
 */
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

/** A span in backticks, a command at the end of a line, or a word: what is pasted must stay in one piece. */
const PIECE = /`[^`]*`\S*|(?:coffer|chmod) .*$|\S+/g

/**
 * Lines of prose broken between words so that none is wider than `width`, unless one piece of it is. A line that was
 * laid out by hand (it begins with a space, or has two in a row) stays.
 */
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

/** Every line moved right by `columns`. */
export function indent(text: string, columns: number): string {
  return text.replace(/^/gm, ' '.repeat(columns))
}

const PRINTABLE_ASCII = /^[\x20-\x7e]*$/
/** Combining marks and the vowels and tails of composed Hangul. */
const ZERO_WIDTH = /[\p{Mn}\p{Me}\u1160-\u11ff]/u
/** East Asian Width W and F (Unicode Annex 11), and what is drawn as a picture; a flag is two halves of one column. */
const DOUBLE_WIDTH =
  /(?![\u{1f1e6}-\u{1f1ff}])[\p{Emoji_Presentation}\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u

/** Columns that displayed text takes on a terminal. Skin tones count as pictures of their own, as most terminals do. */
export function measureWidth(text: string): number {
  return measureUpTo(text, Number.POSITIVE_INFINITY)
}

/** The same, but `most` when it is more: that takes no longer for longer text. */
export function measureUpTo(text: string, most: number): number {
  if (PRINTABLE_ASCII.test(text)) return Math.min(text.length, most)
  let width = 0
  for (const character of text) {
    width += widthOf(character)
    if (width >= most) return most
  }
  return width
}

function widthOf(character: string): number {
  if (ZERO_WIDTH.test(character)) return 0
  return DOUBLE_WIDTH.test(character) ? 2 : 1
}

/** Text of at most `width` columns (1 or more): when it is longer it is cut between characters and ends in `…`. */
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
