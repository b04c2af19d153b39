/** The place in code that an error is about, as a person looks at it. Pure; it reads no file. */

const LINES_AROUND = 2
const MOST_COLUMNS = 100

/** The lines around `line`, with a mark below `column`, both from 1. Nothing where there is no such line. */
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

/** The place that a message (`line 2, column 3: …`) or the first frame of a stack in reactor code names. */
export function findPlace(text: string): { line: number; column: number } | undefined {
  const match = /line (\d+), column (\d+)/.exec(text) ?? /\breactor\.js:(\d+):(\d+)/.exec(text)
  return match === null ? undefined : { line: Number(match[1]), column: Number(match[2]) }
}
