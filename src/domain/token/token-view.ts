/** The token object of the API, as a transform shows it. */

import { omitUndefined } from '../omit-undefined.js'
import type { Transform } from '../permissions.js'
import type { TokenRecord } from '../records.js'

/** Attributes without a value are absent. */
export type TokenView = Omit<TokenRecord, 'data' | 'masked' | 'deduplicate_token'> & { data?: unknown }

/**
 * `reveal` shows the data, `mask` the rendered mask (no `data` if there is no mask, `data: null` if it yields null), and
 * `redact` omits `data`. Members are in the order of the API's specification.
 */
export function viewToken(record: TokenRecord, transform: Transform): TokenView {
  return omitUndefined({
    id: record.id,
    tenant_id: record.tenant_id,
    type: record.type,
    data: visibleData(record, transform),
    mask: record.mask,
    fingerprint: record.fingerprint,
    containers: record.containers,
    metadata: record.metadata,
    created_by: record.created_by,
    created_at: record.created_at,
    modified_by: record.modified_by,
    modified_at: record.modified_at,
    search_indexes: record.search_indexes,
    fingerprint_expression: record.fingerprint_expression,
    expires_at: record.expires_at,
  }) as TokenView
}

/** The token object without the attributes that require permission to read the token. */
export function redactDuplicate(view: TokenView): TokenView {
  const { data, metadata, fingerprint_expression, search_indexes, mask, ...rest } = view
  return rest as TokenView
}

function visibleData(record: TokenRecord, transform: Transform): unknown {
  if (transform === 'reveal') return record.data
  if (transform === 'redact' || record.mask === undefined) return undefined
  return record.masked ?? null
}
