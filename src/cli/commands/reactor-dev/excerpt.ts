import { displayLines, measureWidth } from '../../output/display.js'
import type { Place, Source } from './source.js'

/** The number of characters that are shown before and after the column. */
const SHOWN_BEFORE = 60
const SHOWN_AFTER = 40

/** Returns the line with a caret below the column. Returns undefined if the file does not have this line. */
export function excerptOf({ path, lines }: Source, { line, column }: Place): string | undefined {
  const text = lines[line - 1]
  if (text === undefined) return undefined
  const at = Math.min(column - 1, text.length)
  const from = Math.max(0, at - SHOWN_BEFORE)
  const to = at + SHOWN_AFTER
  const before = `${from > 0 ? '…' : ''}${displayLines(text.slice(from, at))}`
  const after = `${displayLines(text.slice(at, to))}${to < text.length ? '…' : ''}`
  const number = `${line}`
  return [
    `${displayLines(path)}:${line}:${column}`,
    `  ${number} | ${before}${after}`,
    `  ${' '.repeat(number.length)} | ${' '.repeat(measureWidth(before))}^`,
  ].join('\n')
}
