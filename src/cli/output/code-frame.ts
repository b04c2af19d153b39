/** Shows the place of an error in code. */
import { displayLines } from './display.js'
import { type Terminal, write } from './terminal.js'

const LINES_AROUND = 2
const MOST_COLUMNS = 100

/** The lines around `line`, with a mark below `column`, both from 1. Empty if there is no such line. */
export function formatFrame(code: string, { line, column }: { line: number; column: number }): string {
  const lines = code.split(/\r\n|[\n\r]/)
  if (line < 1 || line > lines.length) return ''
  const first = Math.max(1, line - LINES_AROUND)
  const last = Math.min(lines.length, line + LINES_AROUND)
  const width = String(last).length
  const rows: string[] = []
  for (let number = first; number <= last; number++) {
    const text = (lines[number - 1] ?? '').replaceAll('\t', ' ').slice(0, MOST_COLUMNS)
    rows.push(`${number === line ? '>' : ' '} ${String(number).padStart(width)} | ${text}`.trimEnd())
    if (number === line && column <= MOST_COLUMNS)
      rows.push(`  ${' '.repeat(width)} | ${' '.repeat(column - 1)}^`)
  }
  return rows.join('\n')
}

/** Prints the place in `code` that `text` names, if it names one, to standard error. */
export async function printPlace({ stderr }: Terminal, code: string, text: string): Promise<void> {
  const place = findPlace(text)
  if (place !== undefined) await write(stderr, `${displayLines(formatFrame(code, place))}\n`)
}

/** The place in a message (`line 2, column 3: …`) or in the first frame of a reactor's stack. */
export function findPlace(text: string): { line: number; column: number } | undefined {
  const match = /line (\d+), column (\d+)/.exec(text) ?? /\breactor\.js:(\d+):(\d+)/.exec(text)
  return match === null ? undefined : { line: Number(match[1]), column: Number(match[2]) }
}
