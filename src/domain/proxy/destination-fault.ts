import { parseDuration } from '../dates.js'

export type DestinationFault =
  | { kind: 'timeout' }
  | { kind: 'status'; status: number }
  | { kind: 'delay'; ms: number }

export const DESTINATION_FAULT_RULE =
  'must be timeout, a status from 200 to 599 such as 502, or a time of at most 10m such as 30s'

const LONGEST_MS = 600_000

export function readDestinationFault(given: unknown): DestinationFault | undefined {
  const text = typeof given === 'number' ? String(given) : given
  if (typeof text !== 'string' || text.length > 20) return undefined
  if (text === 'timeout') return { kind: 'timeout' }
  if (/^[2-5]\d\d$/.test(text)) return { kind: 'status', status: Number(text) }
  const ms = parseDuration(text.replace(' ', ''))
  return ms === undefined || ms > LONGEST_MS ? undefined : { kind: 'delay', ms }
}
