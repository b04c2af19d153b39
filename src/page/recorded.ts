import type { RequestRecord } from '../framework/ports/control.js'

/**
 * Sample data, which completes recorded bodies. A recorded body has descriptions such as `(16 characters)` in place of
 * data.
 */
export const SAMPLES: Record<string, unknown> = {
  card: { number: '4242424242424242', expiration_month: 12, expiration_year: 2040 },
  card_number: '4242424242424242',
  bank: { routing_number: '110000000', account_number: '000123456789' },
  us_bank_account_number: '000123456789',
  us_bank_routing_number: '110000000',
  social_security_number: '000-70-7279',
  employer_id_number: '12-3456789',
  token: 'a secret',
}

/** Returns placeholders such as `<16 characters>` for hidden values. */
export function markHidden(kept: unknown): unknown {
  if (isHidden(kept)) return `<${(kept as string).slice(1, -1)}>`
  if (Array.isArray(kept)) return kept.map(markHidden)
  if (typeof kept !== 'object' || kept === null) return kept
  const entries = Object.entries(kept).filter(([name]) => name !== '…')
  return Object.fromEntries(entries.map(([name, value]) => [name, markHidden(value)]))
}

/** True for a description in place of data. */
export const isHidden = (value: unknown) => typeof value === 'string' && /^\(.+\)$/.test(value)

/** True if some data of the value was not recorded. */
const isIncomplete = (value: unknown): boolean =>
  isHidden(value) ||
  (typeof value === 'object' &&
    value !== null &&
    Object.entries(value).some(([name, item]) => name === '…' || isIncomplete(item)))

/**
 * Completes a recorded body with data of the example, or with sample data. `fill` replaces a value for which there is
 * no sample.
 */
export function refill(kept: unknown, example: unknown, fill = markHidden): unknown {
  if (typeof kept !== 'object' || kept === null || Array.isArray(kept))
    return isHidden(kept) ? (example ?? {}) : kept
  const samples = (example ?? {}) as Record<string, unknown>
  const { type } = kept as { type?: unknown }
  const ofData = SAMPLES[typeof type === 'string' ? type : 'token']
  const entries = Object.entries(kept).flatMap(([name, value]) => {
    if (name === '…') return []
    const sample = name === 'data' ? ofData : samples[name]
    return [[name, isIncomplete(value) ? (sample ?? fill(value)) : value]]
  })
  return Object.fromEntries(entries)
}

/** The server refuses a path with one of these placeholders. */
export const markPath = (path: string) =>
  path.replaceAll('…', '<rest of the path>').replaceAll(/\((\d+ digits)\)/g, '<$1>')

/** `body`: the completed body as text. */
export function describeDraft(recorded: unknown, path: string, body: string | undefined): string | undefined {
  const none = 'Coffer records no data.'
  if (/<[^<>\n]+>/.test(path + (body ?? ''))) return `${none} Replace the <…> placeholders before you send.`
  return isIncomplete(recorded) ? `${none} The body has sample data of the same type instead.` : undefined
}

type Failed = Pick<RequestRecord, 'status' | 'request' | 'answer' | 'query'>
const MAX_FILLED = 20_000
const MAX_ITEMS = 1000
/** The value of these parameters must be a number. */
const COUNTS = ['page', 'size', 'number', 'count']

/**
 * Returns body and query of a request that gets the same status. A made-up value of the same length and type replaces
 * each refused value, and sample data replaces the other values. `replaced`: each value that was not recorded, as
 * dotted name.
 */
export function reproduce({ status, request, answer, query = [] }: Failed, example: unknown) {
  const { errors = {} } = (typeof answer === 'object' && answer !== null ? answer : {}) as { errors?: object }
  const wrong = Object.keys(errors)
  const isWrong = (name: string) =>
    status === 400 &&
    wrong.some((each) => each === name || each.startsWith(`${name}.`) || each.startsWith(`${name}[`))
  // If no error names a value of the request, each value may be wrong.
  const sentNames = [
    ...query,
    ...(typeof request === 'object' && request !== null ? Object.keys(request) : []),
  ]
  const isAnyWrong = status === 400 && !sentNames.some(isWrong)
  const replaced = [...query, ...listHidden(request)]
  const parameters = query.map((name) => {
    const isCount = COUNTS.includes(name) && !isWrong(name) && !isAnyWrong
    return `${encodeURIComponent(name)}=${isCount ? 1 : 'x'}`
  })
  const search = parameters.length === 0 ? '' : `?${parameters.join('&')}`
  if (request === undefined) return { query: search, body: undefined, replaced }
  if (typeof request === 'string' && isHidden(request) && status === 400)
    return { query: search, body: String(fillIn(request)), replaced: ['the body'] }
  const sample = refill(request, example, fillIn)
  const body = status === 400 ? withWrong(request, sample, isWrong, isAnyWrong) : sample
  return { query: search, body: JSON.stringify(body, undefined, 2), replaced }
}

/** Takes refused properties from the recorded body, and other properties from the sample. */
function withWrong(kept: unknown, sample: unknown, isWrong: (name: string) => boolean, isAnyWrong: boolean) {
  if (typeof kept !== 'object' || kept === null || Array.isArray(kept)) return fillIn(kept)
  const samples = (sample ?? {}) as Record<string, unknown>
  const entries = Object.entries(kept).map(([name, value]) => {
    const isKept = isAnyWrong || isWrong(name) || !(name in samples)
    return [name === '…' ? 'other' : name, isKept ? fillIn(value) : samples[name]]
  })
  return Object.fromEntries(entries)
}

/** Replaces each description by a made-up value of its type and length. */
function fillIn(kept: unknown): unknown {
  if (Array.isArray(kept)) return kept.map(fillIn)
  if (typeof kept === 'object' && kept !== null) {
    const entries = Object.entries(kept).map(([name, value]) => [
      name === '…' ? 'other' : name,
      fillIn(value),
    ])
    return Object.fromEntries(entries)
  }
  if (!isHidden(kept)) return kept
  const [, kind = '', count = '0'] = /^\((array of|number|boolean|object)? ?(\d+)?/.exec(kept as string) ?? []
  if (kind === 'number') return -1
  if (kind === 'boolean') return true
  if (kind === 'object') return {}
  if (kind === 'array of') return Array(Math.min(Number(count), MAX_ITEMS)).fill('x')
  return 'x'.repeat(Math.min(Number(count), MAX_FILLED))
}

/** Returns the dotted names of values that were not recorded. */
function listHidden(kept: unknown, name = ''): string[] {
  if (isHidden(kept)) return [name === '' ? 'the body' : name]
  if (typeof kept !== 'object' || kept === null) return []
  return Object.entries(kept).flatMap(([key, value]) =>
    listHidden(value, name === '' ? key : `${name}.${key}`),
  )
}
