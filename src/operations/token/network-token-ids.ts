/** Tokens and token intents show the id of the network token of their card. */
import { type Awaitable, andThen } from '../../domain/awaitable.js'
import type { TokenRecord } from '../../domain/records/records.js'
import type { Context } from '../../framework/context.js'

/** Returns `view` with the id of the network token, unless the network token was deleted. */
export function showNetworkToken<V extends { _extras?: object | undefined }>(
  { store, caller }: Context,
  { network_token_id: id }: Pick<TokenRecord, 'network_token_id'>,
  view: V,
): Awaitable<V> {
  if (id === undefined) return view
  return andThen(store.get('network_token', caller.tenant, id), (found) =>
    found === undefined ? view : { ...view, _extras: { ...view._extras, network_token_ids: [id] } },
  )
}
