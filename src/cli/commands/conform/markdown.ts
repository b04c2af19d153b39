import { display } from '../../output/display.js'
import type { Report } from './report.js'

/** Text from the server cannot end a table cell, begin a tag or make a link. */
export function formatMarkdown({ server, date, areas, differences, reasons, remaining }: Report): string {
  const parts = [
    `# ${toCell(server)}, ${date}`,
    table(
      ['Area', 'Calls', 'Equal', 'Different'],
      areas.map(({ area, calls, equal, different }) => [area, calls, equal, different]),
    ),
  ]
  if (differences.length > 0)
    parts.push(
      '## Differences',
      table(
        ['Area', 'Case', 'Step', 'Operation', 'Difference'],
        differences.map((each) => [each.area, each.case, each.step, each.operation, each.difference]),
      ),
    )
  if (reasons.length > 0)
    parts.push(
      '## Left out',
      table(
        ['Reason', 'Cases'],
        reasons.map(({ reason, cases }) => [reason, cases]),
      ),
    )
  if (remaining.length > 0)
    parts.push(
      '## Not deleted',
      table(
        ['Command'],
        remaining.map((each) => [`coffer ${each.delete} ${each.id}`]),
      ),
    )
  return `${parts.join('\n\n')}\n`
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const body = rows.map((row) => line(row.map((cell) => toCell(String(cell)))))
  return [line(head), line(head.map(() => '---')), ...body].join('\n')
}

function toCell(text: string): string {
  return display(text).replaceAll(/[\\`*_[\]<>|!&~]/g, '\\$&')
}
