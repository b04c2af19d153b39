/** Lays out answers for people: a list as a table, one object as its fields. */
import { isObject } from '../../domain/json/json.js'
import type { List } from '../../framework/page.js'
import { display, displayLines, indent, measureWidth, toJson, truncate } from './display.js'
import { readField } from './fields.js'

type Bold = (text: string) => string

const GAP = '  '
/** The least width of a column. An id, or the first column, is useless when it is cut. */
const LEAST_WIDTH = 8
const LEAST_ID_WIDTH = 36
/** The most padding in a file or a pipe, where nothing is cut: one long value does not widen all rows. */
const MOST_PADDED = 200
/** A longer label does not move the values of other lines. */
const MOST_LABEL = 24
/** A time as the API formats it. */
const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}\+00:00$/

/** One value on one line. */
function textOf(value: unknown): string {
  if (value === undefined) return ''
  if (typeof value === 'string') return display(value)
  const isFlat = Array.isArray(value) && value.every((member) => typeof member === 'string')
  return isFlat ? value.map(display).join(', ') : toJson(value)
}

/** The text of a table cell; times are shortened to seconds. */
export function cellOf(path: string, value: unknown): string {
  const isTime = path.endsWith('_at') && !path.includes('.') && typeof value === 'string'
  return textOf(isTime ? value.replace(TIME, '$1 $2Z') : value)
}

/** One object, one line per field. JSON that is too wide is indented below its label. */
export function drawOne(value: unknown, fields: readonly string[] | undefined, width: number, bold: Bold) {
  if (!isObject(value) || Object.keys(value).length === 0) return `${textOf(value)}\n`
  const shown = (fields ?? Object.keys(value))
    .map((path) => [display(path), fields ? readField(value, path) : value[path]] as const)
    .filter(([, field]) => field !== undefined)
  const labelWidth = Math.min(MOST_LABEL, Math.max(0, ...shown.map(([name]) => measureWidth(name)))) + 2
  const drawField = (name: string, field: unknown): string => {
    if (typeof field === 'string' && field.includes('\n')) return `\n${indent(displayLines(field), 2)}`
    const text = textOf(field)
    if (typeof field === 'object' && labelWidth + measureWidth(text) > width)
      return `\n${indent(toJson(field, 2), 2)}`
    return ' '.repeat(Math.max(1, labelWidth - measureWidth(name) - 1)) + text
  }
  return shown.map(([name, field]) => `${bold(`${name}:`)}${drawField(name, field)}\n`).join('')
}

/** The lines of a table, or one object below another if columns were too narrow. Calls `onCut` if a cell does not fit. */
export function* drawMany(
  items: readonly unknown[],
  columns: readonly string[],
  width: number,
  bold: Bold,
  onCut: () => void,
): Generator<string> {
  if (!items.some(isObject)) return yield items.map((item) => `${textOf(item)}\n`).join('')
  const rows = items.map((item) => columns.map((path) => cellOf(path, readField(item, path))))
  const cells = [columns.map(display), ...rows]
  const widths = fitColumns(cells, width)
  if (widths === undefined) return yield items.map((item) => drawOne(item, columns, width, bold)).join('\n')
  for (const [at, row] of cells.entries()) {
    const fitted =
      width === Number.POSITIVE_INFINITY ? row : row.map((cell, column) => truncate(cell, widths[column]!))
    if (fitted.some((cell, column) => cell !== row[column])) onCut()
    const padded = fitted.map((cell, column) => {
      const padding = ' '.repeat(Math.max(0, widths[column]! - measureWidth(cell)))
      return (at === 0 ? bold(cell) : cell) + padding
    })
    // Without borders, so that it can be searched and pasted.
    yield `${padded.join(GAP).trimEnd()}\n`
  }
}

/** Narrows the widest columns first; undefined if the least widths do not fit. */
function fitColumns(cells: readonly (readonly string[])[], width: number): number[] | undefined {
  const [heads = []] = cells
  const most = width === Number.POSITIVE_INFINITY ? MOST_PADDED : width
  const widest = (at: number) => cells.reduce((so, row) => Math.max(so, measureWidth(row[at]!)), 1)
  const natural = heads.map((_, at) => Math.min(most, widest(at)))
  const sum = (widths: readonly number[]) => widths.reduce((total, each) => total + each, 0)
  const room = width - GAP.length * (heads.length - 1)
  if (sum(natural) <= room) return natural
  for (let cap = room; cap >= LEAST_WIDTH; cap--) {
    const least = (at: number) => (heads[at] === 'id' || at === 0 ? LEAST_ID_WIDTH : LEAST_WIDTH)
    const widths = natural.map((wanted, at) => Math.min(wanted, Math.max(cap, least(at))))
    if (sum(widths) <= room) return widths
  }
  return undefined
}

/** The position of a page in its list; `empty` if the list has no items. */
export function describePage({ pagination, data }: List<unknown>, empty = 'Nothing found.'): string {
  const { total_items: total, page_number: page, page_size: size, total_pages: pages } = pagination
  if (total === 0) return empty
  const all = `page ${page} of ${pages}`
  if (data.length === 0) return `No items on ${all}; ${total} in total.`
  const first = (page - 1) * size + 1
  return `${first}–${first + data.length - 1} of ${total} · ${all}`
}
