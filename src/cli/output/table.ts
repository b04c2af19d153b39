import { isObject } from '../../domain/json/json.js'
import type { CursorPage, List } from '../../framework/page.js'
import { countOf, display, displayLines, fold, indent, measureWidth, toJson, truncate } from './display.js'
import { readField } from './fields.js'

type Bold = (text: string) => string

const GAP = '  '
/**
 * The minimum width of a column, or the width of its name if the name is wider. Ids and API keys have larger
 * minimums, because a cut id or key is useless.
 */
const MIN_WIDTH = 8
const MIN_FIRST_WIDTH = 36
const MIN_WIDTHS: Record<string, number> = {
  id: 36,
  key: 26,
  shows: 20,
  created: 10,
  expires: 10,
  created_at: 20,
  expires_at: 20,
  message: 20,
}
/** The maximum padding of a column in a file or a pipe, so that one long value does not widen all rows. */
const MAX_PADDED = 200
/** The values of an object begin in the column after its longest label, but at most after this number of columns. */
const MAX_LABEL = 24
const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}\+00:00$/

function textOf(value: unknown): string {
  if (value === undefined) return ''
  if (typeof value === 'string') return display(value)
  const isFlat = Array.isArray(value) && value.every((member) => typeof member === 'string')
  return isFlat ? value.map(display).join(', ') : toJson(value)
}

export type FormatItem = (item: unknown) => string

export function cellOf(path: string, value: unknown, format?: FormatItem): string {
  if (format !== undefined && Array.isArray(value)) return value.map(format).map(display).join('; ')
  const isTime = path.endsWith('_at') && !path.includes('.') && typeof value === 'string'
  return textOf(isTime ? value.replace(TIME, '$1T$2Z') : value)
}

export interface Layout {
  width: number
  bold: Bold
  marks?: Readonly<Record<string, string>> | undefined
  /** How to format the members of a list, by the field of the list. Default: JSON. */
  formats?: Readonly<Record<string, FormatItem>> | undefined
  wraps?: boolean | undefined
  optional?: readonly string[] | undefined
  all?: readonly string[]
}

export function drawOne(value: unknown, fields: readonly string[] | undefined, layout: Layout) {
  if (!isObject(value) || Object.keys(value).length === 0) return `${textOf(value)}\n`
  const { width, bold, marks = {}, formats = {} } = layout
  const shown = (fields ?? Object.keys(value))
    .map((path) => {
      const label = display(path) + (marks[path] === undefined ? '' : ` ${marks[path]}`)
      const field = fields ? readField(value, path) : value[path]
      const format = formats[path]
      const isFormatted = format !== undefined && Array.isArray(field)
      return [label, isFormatted ? field.map(format).map(display).join('\n') : field] as const
    })
    .filter(([, field]) => field !== undefined)
  const labelWidth = Math.min(MAX_LABEL, Math.max(0, ...shown.map(([name]) => measureWidth(name)))) + 2
  const drawField = (name: string, field: unknown): string => {
    if (typeof field === 'string' && field.includes('\n')) return `\n${indent(displayLines(field), 2)}`
    const text = textOf(field)
    if (typeof field === 'object' && labelWidth + measureWidth(text) > width)
      return `\n${indent(toJson(field, 2), 2)}`
    return ' '.repeat(Math.max(1, labelWidth - measureWidth(name) - 1)) + text
  }
  return shown.map(([name, field]) => `${bold(`${name}:`)}${drawField(name, field)}\n`).join('')
}

/**
 * If the columns would be too narrow, leaves out optional columns. If the other columns are still too narrow, draws one
 * item below another. Calls `onCut` if a cell was cut.
 */
export async function* drawMany(
  items: readonly unknown[],
  columns: readonly string[],
  layout: Layout,
  onCut: () => void,
): AsyncGenerator<string> {
  const { width, bold, wraps = false, optional = [], all, formats = {} } = layout
  const rows = items.map((item) => columns.map((path) => cellOf(path, readField(item, path), formats[path])))
  const cells = [columns.map(display), ...rows]
  const widths = fitColumns(cells, width)
  const omitted = optional.find((name) => columns.includes(name))
  if (!items.some(isObject)) yield items.map((item) => `${textOf(item)}\n`).join('')
  else if (widths !== undefined) {
    const isWhole = width === Number.POSITIVE_INFINITY
    const fit = (text: string, at: number) => (isWhole ? text : truncate(text, widths[at]!))
    const toLines = (cell: string, at: number) => (wraps ? fold(cell, widths[at]!).split('\n') : [cell])
    const lines = cells.flatMap((row) => alignLines(row.map(toLines)))
    const fitted = lines.map((row) => row.map(fit))
    if (all || fitted.some((row, at) => row.some((cell, column) => cell !== lines[at]![column]))) onCut()
    yield* drawTable(fitted, widths, bold)
  } else if (omitted !== undefined) {
    const others = columns.filter((name) => name !== omitted)
    yield* drawMany(items, others, { all: columns, ...layout }, onCut)
  } else yield items.map((item) => drawOne(item, all ?? columns, layout)).join('\n')
}

function alignLines(cells: readonly (readonly string[])[]): string[][] {
  const height = Math.max(...cells.map(({ length }) => length))
  return Array.from({ length: height }, (_, at) => cells.map((lines) => lines[at] ?? ''))
}

/** Narrows the widest columns first. Returns undefined if even the minimum widths do not fit. */
function fitColumns(cells: readonly (readonly string[])[], width: number): number[] | undefined {
  const [heads = []] = cells
  const most = width === Number.POSITIVE_INFINITY ? MAX_PADDED : width
  const widest = (at: number) => cells.reduce((so, row) => Math.max(so, measureWidth(row[at]!)), 1)
  const natural = heads.map((_, at) => Math.min(most, widest(at)))
  const sum = (widths: readonly number[]) => widths.reduce((total, each) => total + each, 0)
  const room = width - GAP.length * (heads.length - 1)
  if (sum(natural) <= room) return natural
  for (let cap = room; cap >= MIN_WIDTH; cap--) {
    const least = (at: number) =>
      MIN_WIDTHS[heads[at]!] ?? (at === 0 ? MIN_FIRST_WIDTH : Math.max(MIN_WIDTH, measureWidth(heads[at]!)))
    const widths = natural.map((wanted, at) => Math.min(wanted, Math.max(cap, least(at))))
    if (sum(widths) <= room) return widths
  }
  return undefined
}

/** Stands for one column of text. This character of the private use area of Unicode is never printed. */
const STAND_IN = '\ue000'
/**
 * A table is drawn in parts of this many rows, because the time of cli-table3 grows with the square of the
 * number of rows.
 */
const ROWS_AT_ONCE = 50
const EDGES = ['', '-left', '-mid', '-right'].flatMap((part) => [`top${part}`, `bottom${part}`])
const NO_RULES = ['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', ...EDGES]
const CHARS = { ...Object.fromEntries(NO_RULES.map((name) => [name, ''])), middle: GAP }

/**
 * The Unicode data of cli-table3 is old, so cli-table3 gets placeholders of the right width. The texts of the cells
 * then replace these placeholders in order.
 */
async function* drawTable(rows: readonly (readonly string[])[], colWidths: number[], bold: Bold) {
  const { default: Table } = await import('cli-table3')
  const [heads = [], ...others] = rows
  const cells = [...heads.map((head) => bold(head)), ...others.flat().filter((cell) => cell !== '')].values()
  const toStandIn = (cell: string, at: number) =>
    cell && STAND_IN.repeat(Math.min(colWidths[at]!, measureWidth(cell) || 1))
  const style = { head: [], border: [], 'padding-left': 0, 'padding-right': 0 }
  for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
    const table = new Table({ chars: CHARS, style, colWidths })
    table.push(...rows.slice(at, at + ROWS_AT_ONCE).map((row) => row.map(toStandIn)))
    // Lines are trimmed before the cells are inserted, so that spaces at the end of a cell are kept.
    for (const line of table.toString().split('\n'))
      yield `${line.trimEnd().replace(/\ue000+/g, () => cells.next().value ?? '')}\n`
  }
}

/**
 * Returns the position of a page in its list, or `empty` if the list has no items. A page of a list by cursor has no
 * number.
 */
export function describePage(
  { pagination, data }: List<unknown> | CursorPage<unknown>,
  empty = 'Nothing found.',
): string {
  if (!('total_items' in pagination)) {
    const { next } = pagination
    if (data.length === 0) return empty
    return countOf(data.length, 'item') + (next === undefined ? '' : ` · more: --all, or --after ${next}`)
  }
  const { total_items: total, page_number: page, page_size: size, total_pages: pages } = pagination
  if (total === 0) return empty
  const all = `page ${page} of ${pages}`
  if (data.length === 0) return `No items on ${all}; ${total} in total.`
  const first = (page - 1) * size + 1
  return `${first}–${first + data.length - 1} of ${total} · ${all}`
}
