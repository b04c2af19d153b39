/** If a client has encrypted the data, the answer to the creation does not contain the data, not even masked. */
import { prepareToken, type TokenDraft } from '../../domain/token/token.js'
import type { Context } from '../../framework/context.js'
import { openEncrypted } from '../key/open-encrypted.js'
import { type EncryptedToken, EXPRESSIONS, refuseExpressions } from './check-token.js'
import type { TokenView } from './token-attributes.js'

/**
 * Decrypts the data, and validates it like data that arrives as plaintext.
 * @throws CofferError `validation`, or `forbidden` in no-reveal mode for expressions over the data
 */
export async function openDraft(
  context: Context,
  { jwe, given, budget }: EncryptedToken,
): Promise<TokenDraft> {
  // The JWE can come from somebody else. Expressions could reveal its data to the caller.
  refuseExpressions(context, given, [...EXPRESSIONS, 'id'])
  const { encrypted: _, ...attributes } = given
  const data = await openEncrypted(context, jwe, budget)
  const rules = { expressions: await context.expressions(), budget, now: context.now }
  return prepareToken({ ...attributes, data }, rules)
}

export function withoutData<T extends { data?: unknown; _extras?: TokenView['_extras'] }>(view: T): T {
  const { data: _, ...shown } = view
  return { ...shown, ...(view._extras && { _extras: { ...view._extras, decrypted_payload: true } }) } as T
}
