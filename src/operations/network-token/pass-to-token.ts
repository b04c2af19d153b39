import type { IntentRecord } from '../../domain/records/records.js'
import type { Context } from '../../framework/context.js'
import { isSameCard } from '../token/card-details.js'
import { rewriteToken } from '../token/rewrite-token.js'
import { KIND } from './records.js'

/**
 * Requires: the token intent had a network token, and has become the token with this id. The function stores the id
 * of the network token in the token. The function also stores the id of the token in the network token, unless the
 * network token was created from another token.
 */
export async function passToToken(context: Context, intent: IntentRecord, tokenId: string): Promise<void> {
  const { store, caller } = context
  const id = intent.network_token_id
  const record = id === undefined ? undefined : await store.get(KIND, caller.tenant, id)
  const token = await store.get('token', caller.tenant, tokenId)
  if (record === undefined || token === undefined || !isSameCard(token, intent)) return
  if (record.token_id === undefined)
    await store.replace(KIND, caller.tenant, { ...record, token_id: tokenId })
  if (token.network_token_id !== id)
    await rewriteToken(context, caller.tenant, { ...token, network_token_id: id })
}
