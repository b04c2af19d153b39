import type { IntentRecord } from '../../domain/records/records.js'
import type { Context } from '../../framework/context.js'
import { isSameCard } from '../token/card-details.js'
import { rewriteToken } from '../token/rewrite-token.js'
import { KIND } from './records.js'

/**
 * Links the network token of a token intent with the token that was created from the intent. If the network token was
 * created from another token, the network token keeps the id of that token.
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
