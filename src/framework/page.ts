import { arrayOf, component, count, object, text } from './output.js'
import { type Infer, memberOf, type NumberSchema, type ObjectSchema, type Schema } from './schema.js'

export interface List<T> {
  pagination: Infer<typeof paginationOutput>
  data: T[]
}

const paginationOutput = component('Pagination', [], {
  total_items: count,
  page_number: count,
  page_size: count,
  total_pages: count,
})

export function listOutput<const S extends Schema>(item: S) {
  return object({ pagination: paginationOutput, data: arrayOf(item) })
}

export function itemOutput(output: Schema): Schema {
  const { pagination, data } = (output.type === 'object' && output.properties) || {}
  return memberOf(pagination === undefined || data === undefined ? output : data)
}

export interface PageRequest {
  page?: number
  size?: number
}

const counting = { type: 'integer', minimum: 1 } as const

export function pageInput<const L extends number>(largest: L) {
  return {
    page: { ...counting, default: 1, description: 'The number of the page, from 1.' },
    size: { ...counting, maximum: largest, default: 20, description: `Items per page, at most ${largest}.` },
  } as const satisfies Record<string, NumberSchema>
}

export function newestInput<const L extends number>(maximum: L, description: string) {
  return { type: 'integer', minimum: 0, maximum, default: 20, short: 'n', description } as const
}

export const PAGE_PROPERTIES: readonly string[] = Object.keys(pageInput(1))

export function isPaged({ properties = {} }: ObjectSchema): boolean {
  return PAGE_PROPERTIES.every((property) => Object.hasOwn(properties, property))
}

export function listOf<T>(data: T[], total: number, { page, size }: Required<PageRequest>): List<T> {
  const total_pages = Math.ceil(total / size)
  return { pagination: { total_items: total, page_number: page, page_size: size, total_pages }, data }
}

export interface CursorPage<T> {
  pagination: { page_size: number; next?: string }
  data: T[]
}

export function cursorOutput<const S extends Schema>(item: S) {
  const pagination = component('CursorPagination', [], {
    page_size: count,
    'next?': { ...text, description: 'The `start` of the next page; absent on the last one.' },
  })
  return object({ pagination, data: arrayOf(item) })
}

export const cursorInput = {
  start: {
    type: 'string',
    maxLength: 200,
    flag: 'after',
    description: 'The `next` of the previous page; give the same filters again.',
  },
  size: pageInput(100).size,
} as const
