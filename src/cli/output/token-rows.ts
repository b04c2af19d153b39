/** Tokens as rows of a table for people: what one looks for, in few columns. */
import { isObject } from '../../domain/json/json.js'
import { shortenIds } from '../../domain/token/short-id.js'
import { TOKEN_TYPES } from '../../domain/token/token-types.js'
import type { TokenView } from '../../operations/token/token-attributes.js'
import { toJson } from './display.js'

const SHORT_BRANDS: Readonly<Record<string, string>> = { 'american-express': 'amex', 'diners-club': 'diners' }
/** From the longest unit on. An older time is a date. */
const UNITS = [
  ['d', 24 * 60 * 60],
  ['h', 60 * 60],
  ['min', 60],
  ['s', 1],
] as const
const MAX_DAYS = 60

/** `nowMs`: for times, which are relative. Containers are shown if they are not the usual ones of the type. */
export function summarizeTokens(tokens: readonly unknown[], nowMs: number) {
  const views = tokens as readonly TokenView[]
  const ids = shortenIds(views.map(({ id }) => id))
  const rows = views.map((token, at) => {
    const { type, containers } = token
    const usual = TOKEN_TYPES.find(({ name }) => name === type)?.containers
    const isUsual = usual?.join() === containers.join()
    const created = formatAge(token.created_at, nowMs)
    return { id: ids[at], type, shows: describeData(token), containers: isUsual ? '' : containers, created }
  })
  const hasOthers = rows.some(({ containers }) => containers !== '')
  return { rows, columns: ['id', 'type', 'shows', ...(hasOthers ? ['containers'] : []), 'created'] }
}

function describeData({ type, card, bank, data, mask }: TokenView): string {
  const members = isObject(data) ? data : {}
  if (card !== undefined) {
    const { brand = 'card', last4 } = card
    const shown = endOf(type === 'card_number' ? data : members.number, last4)
    return `${SHORT_BRANDS[brand] ?? brand} ${shown}`
  }
  if (bank !== undefined)
    return `${bank.routing_number} ${endOf(members.account_number, bank.account_number_last4)}`
  if (data === undefined) return mask === undefined ? '(no mask)' : '(redacted)'
  return findText(data) ?? toJson(data)
}

/** The number if it is in plaintext. */
function endOf(number: unknown, last4: string): string {
  return typeof number === 'string' && /^\d+$/.test(number) ? number : `•••• ${last4}`
}

function findText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return undefined
  for (const member of Object.values(value)) {
    const text = findText(member)
    if (text !== undefined) return text
  }
  return undefined
}

/** `5 min ago`; a date for a time long ago, or ahead of the clock. */
export function formatAge(date: string, nowMs: number): string {
  const seconds = Math.floor((nowMs - Date.parse(date)) / 1000)
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ['s', 1]
  const count = Math.floor(seconds / size)
  return seconds < 0 || (unit === 'd' && count > MAX_DAYS) ? date.slice(0, 10) : `${count} ${unit} ago`
}
