import type { TokenRecord } from '../../domain/records/records.js'
import { renderSearchOf } from '../../domain/token/token-rendering.js'
import type { Host } from '../../framework/host.js'
import type { StoreWriter } from '../../storage/store.js'

type RewriteTools = { store: StoreWriter } & Pick<Host, 'expressions'>

/** Stores a token or token intent without a change of its search values, expiry and time of modification. */
export async function rewriteToken(
  { store, expressions }: RewriteTools,
  tenant: number,
  record: TokenRecord,
): Promise<void> {
  const search = await renderSearchOf(record, expressions)
  const { expires_at } = record
  const expires = expires_at === undefined ? {} : { expires: Date.parse(expires_at) }
  const options = { search, keepsModified: true, ...expires }
  if (record.is_intent)
    await store.replace(
      'token_intent',
      tenant,
      { ...record, is_intent: true, expires_at: expires_at! },
      options,
    )
  else await store.replace('token', tenant, record, options)
}
