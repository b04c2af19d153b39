/** Draws a table, or one thing below another if columns were too narrow. cli-table3 is imported here, on first use. */
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
export async function* drawMany(
  items: readonly unknown[],
  { asked, isChosen }: { asked: readonly string[]; isChosen: boolean },
  width: number,
  bold: Bold,
  onCut: (lost: string) => void,
): AsyncGenerator<string> {
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
  if (plan !== undefined) yield* drawTable(plan, bold)
  else
    for (const [at, item] of items.entries())
      yield isPlain ? `${textOf(item)}\n` : (at === 0 ? '' : '\n') + drawOne(item, columns, width, bold)
}

/** Placeholder for one column of text, from the private use area; never printed. */
const STAND_IN = '\ue000'
/** The time of cli-table3 grows with the square of the number of rows. */
const ROWS_AT_ONCE = 50
const NO_RULES = {
  ...{ top: '', 'top-mid': '', 'top-left': '', 'top-right': '' },
  ...{ bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '' },
  ...{ left: '', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: GAP },
}

/**
 * Draws a table without borders, so that it can be searched and pasted. cli-table3 measures widths by an old Unicode
 * version, so it lays out placeholders of the right width, which are then replaced by the cells in reading order.
 */
async function* drawTable({ heads, rows, widths }: NonNullable<ReturnType<typeof planTable>>, bold: Bold) {
  const { default: Table } = await import('cli-table3')
  const cells = [...heads.map((head) => bold(head)), ...rows.flat()].filter((cell) => cell !== '').values()
  const all = [heads, ...rows]
  for (let at = 0; at < all.length; at += ROWS_AT_ONCE) {
    const table = new Table({
      chars: NO_RULES,
      style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
      colWidths: widths,
    })
    const standIns = all.slice(at, at + ROWS_AT_ONCE)
    table.push(...standIns.map((row) => row.map((cell, column) => toStandIn(cell, widths[column]!))))
    // Trimmed before the cells are inserted, so that trimming does not depend on their length.
    for (const line of table.toString().split('\n'))
      yield `${line.trimEnd().replace(/\ue000+/g, () => cells.next().value ?? '')}\n`
  }
}

function toStandIn(text: string, width: number): string {
  return text === '' ? '' : STAND_IN.repeat(Math.max(1, measureUpTo(text, width)))
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
