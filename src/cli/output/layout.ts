/** Recognizes the forms of an answer, and lays out values as text. Pure. */
import { isObject } from '../../domain/json/json.js'
import type { List } from '../../framework/page.js'
import { display, displayLines, indent, layOutJson, measureWidth, toJson } from './display.js'
import { readField } from './fields.js'

export type Bold = (text: string) => string

/** Longer labels do not move the values of other lines to the right. */
const LONGEST_ALIGNED_LABEL = 24

/** One object, one line per field. Of what is too wide, JSON is indented below its label, and a time has seconds. */
export function drawOne(value: unknown, fields: readonly string[] | undefined, width: number, bold: Bold) {
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
      return `${bold(`${name}:`)}${hang(name, field, labelWidth, gap, width)}\n`
    })
    .join('')
}

/** A value after its label; indented below it if it has several lines or is JSON that does not fit. */
function hang(name: string, value: unknown, labelWidth: number, gap: string, width: number): string {
  if (typeof value === 'string' && value.includes('\n')) return `\n${indent(displayLines(value), 2)}`
  const text = textOf(value)
  if (labelWidth + measureWidth(text) <= width) return gap + text
  return typeof value === 'object'
    ? `\n${indent(layOutJson(value, width - 2), 2)}`
    : gap + cellOf(name, value)
}

/** A time as the API formats it. */
const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}\+00:00$/

/** The text of a table cell; times are shortened to seconds. */
export function cellOf(path: string, value: unknown): string {
  const isTime = path.endsWith('_at') && !path.includes('.') && typeof value === 'string'
  return isTime ? display(value.replace(TIME, '$1 $2Z')) : textOf(value)
}

/** The names of all fields, in order of first occurrence. */
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

/** The position of a page in its list; `empty` if the list has no items. */
export function describePage({ pagination, data }: List<unknown>, empty = 'Nothing found.'): string {
  const { total_items: total, page_number: page, page_size: size, total_pages: pages } = pagination
  if (total === 0) return empty
  const all = `page ${page} of ${pages}`
  if (data.length === 0) return `No items on ${all}; ${total} in total.`
  const first = (page - 1) * size + 1
  return `${first}–${first + data.length - 1} of ${total} · ${all}`
}

export function isList(result: unknown): result is List<unknown> {
  return isObject(result) && Array.isArray(result.data) && isObject(result.pagination)
}

/** Items that are read while they are printed, such as those of all pages. */
export function isStream(result: unknown): result is AsyncIterable<unknown> {
  return typeof result === 'object' && result !== null && Symbol.asyncIterator in result
}

/** The items of a list or an array; any other value is the only item. */
export function itemsOf(result: unknown): readonly unknown[] {
  if (isList(result)) return result.data
  return Array.isArray(result) ? result : [result]
}
