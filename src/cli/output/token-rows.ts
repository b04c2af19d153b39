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

/** `nowMs`: for times, which are relative. Containers are shown if they are not the usual ones of the type, expiries if there is one. */
export function summarizeTokens(tokens: readonly unknown[], nowMs: number) {
  const views = tokens as readonly TokenView[]
  const ids = shortenIds(views.map(({ id }) => id))
  const rows = views.map((token, at) => {
    const { type, containers } = token
    const usual = TOKEN_TYPES.find(({ name }) => name === type)?.containers
    const isUsual = usual?.join() === containers.join()
    const created = formatAge(token.created_at, nowMs)
    const expires = token.expires_at === undefined ? '' : formatAhead(token.expires_at, nowMs)
    const shows = describeData(token)
    return { id: ids[at], type, shows, containers: isUsual ? '' : containers, created, expires }
  })
  const used = (['containers', 'created', 'expires'] as const).filter((name) =>
    rows.some((row) => row[name] !== ''),
  )
  return { rows, columns: ['id', 'type', 'shows', ...used] }
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

/** `in 5 min`, rounded down; a date for a time far ahead. */
export function formatAhead(date: string, nowMs: number): string {
  const seconds = Math.floor((Date.parse(date) - nowMs) / 1000)
  return seconds < 0 ? 'expired' : (formatSpan(seconds, 'in ', '') ?? date.slice(0, 10))
}

/** `5 min ago`; a date for a time long ago, or ahead of the clock. */
export function formatAge(date: string, nowMs: number): string {
  const seconds = Math.floor((nowMs - Date.parse(date)) / 1000)
  return (seconds < 0 ? undefined : formatSpan(seconds, '', ' ago')) ?? date.slice(0, 10)
}

/** Undefined for a long time. */
function formatSpan(seconds: number, before: string, after: string): string | undefined {
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ['s', 1]
  const count = Math.floor(seconds / size)
  return unit === 'd' && count > MAX_DAYS ? undefined : `${before}${count} ${unit}${after}`
}
