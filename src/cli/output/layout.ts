/**
 * How values become lines and columns of text, whatever the width. Pure; it knows nothing of streams, and bold is
 * whatever it is handed.
 */
import {
  display,
  displayLines,
  indent,
  layOutJson,
  measureUpTo,
  measureWidth,
  toJson,
  truncate,
} from './display.js'
import { isObject, readField } from './fields.js'
import type { List } from './result.js'

export type Bold = (text: string) => string

/** Columns left between two columns. */
export const GAP = '  '
/** A longer label, such as somebody's own key, does not push every other value to the right. */
const LONGEST_ALIGNED_LABEL = 24

/** One thing: a line a field. Values are never cut; JSON that is too wide is laid out below itself. */
export function drawOne(
  value: unknown,
  fields: readonly string[] | undefined,
  width: number,
  bold: Bold,
): string {
  if (!isObject(value) || Object.keys(value).length === 0) return `${textOf(value)}\n`
  const entries = (fields ?? Object.keys(value)).map((path) => [
    display(path),
    fields ? readField(value, path) : value[path],
  ])
  const shown = entries.filter((entry): entry is [string, unknown] => entry[1] !== undefined)
  const aligned = shown.map(([name]) => measureWidth(name)).filter((width) => width <= LONGEST_ALIGNED_LABEL)
  const labelWidth = Math.max(0, ...aligned) + 2
  return shown
    .map(([name, field]) => {
      const gap = ' '.repeat(Math.max(1, labelWidth - measureWidth(name) - 1))
      return `${bold(`${name}:`)}${hang(field, labelWidth, gap, width)}\n`
    })
    .join('')
}

/** A value after its label; below it, two columns in, when it has lines of its own or is JSON that would not fit. */
function hang(value: unknown, labelWidth: number, gap: string, width: number): string {
  if (typeof value === 'string' && value.includes('\n')) return `\n${indent(displayLines(value), 2)}`
  const text = textOf(value)
  const isLaidOut = typeof value === 'object' && labelWidth + measureWidth(text) > width
  return isLaidOut ? `\n${indent(layOutJson(value, width - 2), 2)}` : gap + text
}

/** Cells of displayed text, none wider than its column unless the width has no end. */
export interface TablePlan {
  heads: string[]
  rows: string[][]
  widths: number[]
}

/** Cells that fit `width` columns side by side; undefined when some column would be too narrow to be of use. */
export function planTable(
  items: readonly unknown[],
  columns: readonly string[],
  width: number,
): TablePlan | undefined {
  const heads = columns.map(display)
  const rows = items.map((item) => columns.map((path) => cellOf(path, readField(item, path))))
  const widths = fitColumns(heads, rows, width)
  if (widths === undefined) return undefined
  // Text that goes to a file or a pipe is whole.
  if (width === Number.POSITIVE_INFINITY) return { heads, rows, widths }
  const cut = (cells: readonly string[]) => cells.map((cell, at) => truncate(cell, widths[at] ?? 1))
  return { heads: cut(heads), rows: rows.map(cut), widths }
}

/** A time of the service as the API writes it; data is never in a column of such a name. */
const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}\+00:00$/

/** Times to the second, to leave room for the rest; one thing alone and JSON keep them whole. */
export function cellOf(path: string, value: unknown): string {
  const isTime = path.endsWith('_at') && !path.includes('.') && typeof value === 'string'
  return isTime ? display(value.replace(TIME, '$1 $2Z')) : textOf(value)
}

/** A column gives way down to this many columns, an id only to that of a UUID, which is of no use when cut. */
const LEAST_WIDTH = 8
const LEAST_ID_WIDTH = 36

/** Where nothing is cut, no cell is padded beyond this, so that one long value does not widen all rows. */
const MOST_PADDED = 200

/** The widest columns give way first, equally; undefined when there is not even room for the least of each. */
function fitColumns(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  width: number,
): number[] | undefined {
  const most = width === Number.POSITIVE_INFINITY ? MOST_PADDED : width
  const natural = heads.map((head, at) =>
    [head, ...rows.map((row) => row[at] ?? '')].reduce(
      (widest, cell) => Math.max(widest, measureUpTo(cell, most)),
      0,
    ),
  )
  const least = heads.map((head) => (head === 'id' ? LEAST_ID_WIDTH : LEAST_WIDTH))
  const room = width - GAP.length * (heads.length - 1)
  if (total(natural) <= room) return natural
  for (let cap = room; cap >= LEAST_WIDTH; cap--) {
    const widths = natural.map((wanted, at) => Math.min(wanted, Math.max(cap, least[at] ?? LEAST_WIDTH)))
    if (total(widths) <= room) return widths
  }
  return undefined
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

/** Every field that occurs, in order of first appearance. */
export function namesOf(items: readonly unknown[]): string[] {
  return [...new Set(items.flatMap((item) => (isObject(item) ? Object.keys(item) : [])))]
}

/** One value on one line. */
export function textOf(value: unknown): string {
  if (value === undefined) return ''
  if (typeof value === 'string') return display(value)
  const isFlat = Array.isArray(value) && value.every((member) => typeof member === 'string')
  return isFlat ? value.map(display).join(', ') : toJson(value)
}

/** Where in the whole a page of a list stands; `empty` is said when there is nothing at all. */
export function describePage({ pagination, data }: List, empty = 'Nothing found.'): string {
  const { total_items: total, page_number: page, page_size: size, total_pages: pages } = pagination
  if (total === 0) return empty
  const all = `page ${page} of ${pages}`
  if (data.length === 0) return `Nothing on ${all}: ${total} in all.`
  const first = (page - 1) * size + 1
  return `${first}–${first + data.length - 1} of ${total} · ${all}`
}
