/** Duplicates are tokens with equal fingerprints. */

import { stricterTransform } from '../../domain/access/permissions.js'
import type { TenantRecord, TokenRecord } from '../../domain/records/records.js'
import type { TokenDraft } from '../../domain/token/token.js'
import type { Context } from '../../framework/context.js'
import type { LogEntry } from '../../framework/declaration.js'
import { type Condition, eachRecord } from '../../storage/store.js'
import { logToken, matchesId, whereGranted } from './token-access.js'
import { addExtras, READ, type TokenView, viewToken } from './token-attributes.js'

/** Returns false in no-reveal mode, because a duplicate would confirm a guess of the data. */
export function isDeduplicated(
  { caller }: Context,
  { settings }: TenantRecord,
  { record }: TokenDraft,
  wanted = record.deduplicate_token,
): boolean {
  if (caller.isNoReveal) return false
  return wanted ?? settings.deduplicate_tokens === 'true'
}

/**
 * Returns the oldest token with the fingerprint. If `deduplicate.reveals_existing` is false, ignores tokens that the
 * caller is not allowed to read.
 */
export async function findDuplicate(context: Context, value: string, more: readonly Condition[] = []) {
  const { store, caller } = context
  const conditions = [{ field: 'fingerprint', value }, ...more]
  // The index has short digests, so the whole fingerprint is compared too.
  const isEqual = ({ fingerprint }: TokenRecord) => fingerprint === value
  if (await context.setting('deduplicate.reveals_existing')) {
    const find = (page: number) =>
      store.find('token', caller.tenant, { where: { and: conditions }, page, size: 1 })
    const { records, total } = await find(1)
    return (total > 1 ? (await find(total)).records : records).find(isEqual)
  }
  const isReadable = matchesId(caller, [])
  const where = await whereGranted(context, conditions, [])
  let oldest: TokenRecord | undefined
  for await (const record of eachRecord(store, 'token', caller.tenant, where))
    if (isEqual(record) && isReadable?.(record, context) !== false) oldest = record
  return oldest
}

const VISIBLE_WITHOUT_READ: ReadonlySet<string> = new Set(
  'id tenant_id type fingerprint containers created_by created_at modified_by modified_at expires_at'.split(
    ' ',
  ),
)

/** Shows the existing token. A caller without token:read gets only {@link VISIBLE_WITHOUT_READ}. */
export async function showDuplicate(
  context: Context,
  original: TokenRecord,
  log: LogEntry = READ,
  deduplication_behavior: 'read_existing' | 'update_existing' = 'read_existing',
): Promise<TokenView> {
  const transform = context.caller.transform('token:read', original)
  const shown = stricterTransform('mask', transform ?? 'redact')
  logToken(context, original, log, shown)
  const view = viewToken(original, shown)
  const names = Object.keys(view).filter((name) => transform !== undefined || VISIBLE_WITHOUT_READ.has(name))
  const told = Object.fromEntries(names.map((name) => [name, view[name as keyof TokenView]])) as TokenView
  return addExtras(told, { deduplicated: true, deduplication_behavior })
}
