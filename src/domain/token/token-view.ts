/** What of a token a caller gets to see. Who may see what is decided elsewhere. */

import { omitUndefined } from '../omit-undefined.js'
import type { Transform } from '../permissions.js'
import type { TokenRecord } from '../records.js'

/** The API's token object. Attributes without a value are absent. */
export type TokenView = Omit<TokenRecord, 'data' | 'masked' | 'deduplicate_token'> & { data?: unknown }

/**
 * The token object under a transform: `reveal` shows the data, `mask` the mask over it (no `data` when there is no
 * mask, `data: null` when the mask yields null), `redact` leaves `data` out. Members in the order of the specification.
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

/** The token object without exactly what a caller who may not read the token must not see of it. */
export function redactDuplicate(view: TokenView): TokenView {
  const { data, metadata, fingerprint_expression, search_indexes, mask, ...rest } = view
  return rest as TokenView
}

function visibleData(record: TokenRecord, transform: Transform): unknown {
  if (transform === 'reveal') return record.data
  if (transform === 'redact' || record.mask === undefined) return undefined
  return record.masked ?? null
}
