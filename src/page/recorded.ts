/** Completes recorded bodies, which have descriptions such as `(16 characters)` in place of data. */
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

/** Replaces each description of a hidden value by a text to fill in: `<16 characters>`. */
export function markHidden(kept: unknown): unknown {
  if (isHidden(kept)) return `<${(kept as string).slice(1, -1)}>`
  if (Array.isArray(kept)) return kept.map(markHidden)
  if (typeof kept !== 'object' || kept === null) return kept
  const entries = Object.entries(kept).filter(([name]) => name !== '…')
  return Object.fromEntries(entries.map(([name, value]) => [name, markHidden(value)]))
}

/** Whether the value is a description in place of data. */
export const isHidden = (value: unknown) => typeof value === 'string' && /^\(.+\)$/.test(value)

/** Whether some data of the value was not recorded. */
const isIncomplete = (value: unknown): boolean =>
  isHidden(value) ||
  (typeof value === 'object' &&
    value !== null &&
    Object.entries(value).some(([name, item]) => name === '…' || isIncomplete(item)))

/** Completes a recorded body. Data is not recorded, so data of the example or made-up data replaces it. */
export function refill(kept: unknown, example: unknown): unknown {
  if (typeof kept !== 'object' || kept === null || Array.isArray(kept))
    return isHidden(kept) ? (example ?? {}) : kept
  const samples = (example ?? {}) as Record<string, unknown>
  const { type } = kept as { type?: unknown }
  const ofData = SAMPLES[typeof type === 'string' ? type : 'token']
  const entries = Object.entries(kept).flatMap(([name, value]) => {
    if (name === '…') return []
    const sample = name === 'data' ? ofData : samples[name]
    return [[name, isIncomplete(value) ? (sample ?? markHidden(value)) : value]]
  })
  return Object.fromEntries(entries)
}
