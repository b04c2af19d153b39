/**
 * The verification code of a card, `data.cvc`. The vault deletes the code earlier than ids, fingerprints and search
 * indexes. Therefore no id, fingerprint or search index may be derived from the code.
 */
import { isObject } from '../json/json.js'
import type { TokenRecord } from '../records/token-record.js'

type Coded = Pick<TokenRecord, 'data' | 'code'>

export function hasCode(type: string, data: unknown): boolean {
  return type === 'card' && isObject(data) && (data.cvc ?? undefined) !== undefined
}

export function withoutCode(data: unknown): unknown {
  if (!isObject(data)) return data
  const { cvc: _, ...rest } = data
  return rest
}

export function endsCode({ code }: Coded): boolean {
  return code?.until !== undefined
}

export function lastingData({ data, code }: Coded): unknown {
  return code === undefined ? data : withoutCode(data)
}

/** Leaves out an expired code. `time`: ms of the clock `StoreReader.codeTime`. */
export function tokenAt<R extends TokenRecord>(record: R, time: number): R {
  if (record.code?.until === undefined || time < record.code.until) return record
  const token = { ...record, data: withoutCode(record.data) }
  if ('masked' in record.code) token.masked = record.code.masked
  delete token.code
  return token
}
