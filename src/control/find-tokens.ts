/** Finds tokens for the dashboard, by the texts that the dashboard shows of each token, and by search indexes. */
import { invalid } from '../errors.js'
import type { ResultOf } from '../operations/all.js'
import { listTexts } from './page-tokens.js'
import { performForPage } from './page-work.js'
import type { Place } from './place.js'

const FIND_PAGE = 100
const FIND_PAGES = 10

export type FoundTokens = Awaited<ReturnType<typeof findTokens>>

/**
 * Searches the newest {@link FIND_PAGE} × {@link FIND_PAGES} tokens for texts that contain `text`, and searches all
 * tokens for a search index that equals `text`. `query` restricts both searches. `searched`: the number of tokens that
 * were compared with `text`, of `total` tokens.
 * @throws CofferError `validation`
 */
export async function findTokens(place: Place, { text, query }: Record<string, unknown>) {
  if (typeof text !== 'string' || text === '' || text.length > 200)
    throw invalid('text', 'needs 1 to 200 characters')
  const restricted = typeof query === 'string' && query !== '' ? { query } : undefined
  const operation = restricted === undefined ? 'token list' : 'token search'
  type Page = ResultOf<'token list'>
  const found = new Map<string, Page['data'][number]>()
  let searched = 0
  let total = 0
  for (let page = 1; page <= FIND_PAGES; page++) {
    const { result } = await performForPage(place, operation, { ...restricted, page, size: FIND_PAGE })
    const { data, pagination } = result as Page
    for (const token of data)
      if (listTexts(token).some((each) => includes(each, text))) found.set(token.id, token)
    searched += data.length
    total = pagination.total_items
    if (searched >= total) break
  }
  const quoted = JSON.stringify(text)
  const indexed = [restricted && `(${restricted.query})`, `data:${quoted}`].filter(Boolean).join(' AND ')
  const { result } = await performForPage(place, 'token search', { query: indexed, page: 1, size: FIND_PAGE })
  for (const token of (result as Page).data) found.set(token.id, token)
  return { data: [...found.values()], searched, total }
}

const includes = (each: string, text: string) => each.toLowerCase().includes(text.toLowerCase())
