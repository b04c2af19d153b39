import type { AnyOperation } from './operation.js'

/** The name under which an error of the key itself is listed. */
export const IDEMPOTENCY_KEY = 'idempotency_key'
export const MOST_KEY_CHARACTERS = 255

export function checkIdempotencyKey(key: string): string | undefined {
  if (/^[ -~]+$/.test(key) && key.length <= MOST_KEY_CHARACTERS) return undefined
  return `must have 1 to ${MOST_KEY_CHARACTERS} printable ASCII characters`
}

export function takesIdempotencyKey({ route = '', ignoresIdempotencyKey }: AnyOperation): boolean {
  return /^(?:POST|PUT|PATCH) /.test(route) && ignoresIdempotencyKey !== true
}
