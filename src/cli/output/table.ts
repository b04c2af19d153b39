/** Draws a table, or one thing below another if columns were too narrow. Pure. */
import { isObject } from '../../domain/json/json.js'
import { display, measureUpTo, truncate } from './display.js'
import { readField } from './fields.js'
import { type Bold, cellOf, drawOne, namesOf, textOf } from './layout.js'

/** The space between two columns. */
export const GAP = '  '
/** The minimum width of a column; an id, or what is in the first column, is useless when truncated. */
const LEAST_WIDTH = 8
const LEAST_ID_WIDTH = 36
const TIME_WIDTH = '2030-01-01 00:00:00Z'.length
/** The maximum padding without a width limit, so that one long value does not widen all rows. */
const MOST_PADDED = 200

/**
 * Calls `onCut`, with what is lost, if cells do not fit `width`. Unless a person chose the columns, a time in the last
 * column is left out if it would be cut.
 */
export function* drawMany(
  items: readonly unknown[],
  { asked, isChosen }: { asked: readonly string[]; isChosen: boolean },
  width: number,
  bold: Bold,
  onCut: (lost: string) => void,
): Generator<string> {
  if (items.length === 0) return
  const columns = asked.length > 0 ? asked : namesOf(items)
  const isPlain = !items.some(isObject)
  const whole = isPlain ? undefined : planTable(items, columns, width)
  const last = columns.at(-1)!
  const isTimeCut = last.endsWith('_at') && whole?.isCut === true && whole.widths.at(-1)! < TIME_WIDTH
  const others = isTimeCut && !isChosen ? planTable(items, columns.slice(0, -1), width) : undefined
  const plan = others ?? whole
  const lost = [plan?.isCut ? 'Cells are cut' : [], others === undefined ? [] : `${last} is left out`].flat()
  if (lost.length > 0) onCut(lost.join(' and '))
  if (plan !== undefined) {
    yield drawRow(plan.heads, plan.widths, bold)
    for (const row of plan.rows) yield drawRow(row, plan.widths, String)
  } else
    for (const [at, item] of items.entries())
      yield isPlain ? `${textOf(item)}\n` : (at === 0 ? '' : '\n') + drawOne(item, columns, width, bold)
}

/** A line without borders, so that it can be searched and pasted. No space follows the last cell. */
function drawRow(cells: readonly string[], widths: readonly number[], paint: Bold): string {
  let line = ''
  let space = 0
  for (const [at, cell] of cells.entries()) {
    const width = widths[at]!
    if (cell !== '') {
      line += ' '.repeat(space) + paint(cell)
      space = 0
    }
    space += width - measureUpTo(cell, width) + GAP.length
  }
  return `${line}\n`
}

/** Truncates the cells to fit `width`; undefined if a column would be too narrow. `isCut`: whether some cell is. */
function planTable(items: readonly unknown[], columns: readonly string[], width: number) {
  const heads = columns.map(display)
  const rows = items.map((item) => columns.map((path) => cellOf(path, readField(item, path))))
  const widths = fitColumns(heads, rows, width)
  if (widths === undefined) return undefined
  // Output to a file or a pipe is not truncated.
  if (width === Number.POSITIVE_INFINITY) return { heads, rows, widths, isCut: false }
  const cut = (cells: readonly string[]) => cells.map((cell, at) => truncate(cell, widths[at] ?? 1))
  const fitted = rows.map(cut)
  const isCut = fitted.some((row, at) => row.some((cell, column) => cell !== rows[at]![column]))
  return { heads: cut(heads), rows: fitted, widths, isCut }
}

/** Narrows the widest columns first; undefined if the minimum widths do not fit. */
function fitColumns(heads: readonly string[], rows: readonly (readonly string[])[], width: number) {
  const most = width === Number.POSITIVE_INFINITY ? MOST_PADDED : width
  const widest = (head: string, at: number) =>
    rows.reduce((wide, row) => Math.max(wide, measureUpTo(row[at]!, most)), measureUpTo(head, most))
  const natural = heads.map(widest)
  const least = heads.map((head, at) => (head === 'id' || at === 0 ? LEAST_ID_WIDTH : LEAST_WIDTH))
  const room = width - GAP.length * (heads.length - 1)
  if (total(natural) <= room) return natural
  for (let cap = room; cap >= LEAST_WIDTH; cap--) {
    const widths = natural.map((wanted, at) => Math.min(wanted, Math.max(cap, least[at]!)))
    if (total(widths) <= room) return widths
  }
  return undefined
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
