/** Lists, as every operation that has one answers it: the input that asks for a page, and the object that is one. */
import type { NumberSchema } from './schema.js'

export interface Pagination {
  total_items: number
  page_number: number
  page_size: number
  total_pages: number
}

export interface List<T> {
  pagination: Pagination
  data: T[]
}

/** `page` and `size` for a list whose pages hold at most `largest` items. */
export function pageInput<const L extends number>(largest: L) {
  return {
    page: {
      type: 'integer',
      minimum: 1,
      maximum: 1_000_000_000,
      default: 1,
      description: 'Which page, from 1.',
    },
    size: {
      type: 'integer',
      minimum: 1,
      maximum: largest,
      default: 20,
      description: `Items on a page, at most ${largest}.`,
    },
  } as const satisfies Record<string, NumberSchema>
}

/** The page `page` of `total` items, `size` to a page; past the end `data` is empty and the totals are true. */
export function listOf<T>(data: T[], total: number, { page, size }: { page: number; size: number }): List<T> {
  return {
    pagination: {
      total_items: total,
      page_number: page,
      page_size: size,
      total_pages: Math.ceil(total / size),
    },
    data,
  }
}
