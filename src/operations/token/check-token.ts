/** These checks need no stored data, so they run before the unit of work. */
import { type Jwe, readJwe } from '../../domain/encryption/jwe.js'
import { Budget } from '../../domain/expression/budget.js'
import {
  checkPatch,
  isGiven,
  prepareToken,
  type TokenDraft,
  type TokenRules,
} from '../../domain/token/token.js'
import { noRevealError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import type { CheckTools } from '../../framework/declaration.js'

export type Given = Readonly<Record<string, unknown>>

/** Expressions in these attributes could reveal the data of a token digit by digit. */
export const EXPRESSIONS = ['mask', 'search_indexes', 'fingerprint_expression']

/** A token intent or a decryption key is read later, when the token is created. */
export type NewToken = TokenDraft | Conversion | EncryptedToken

export interface Conversion {
  intent: string
  given: Given
  budget: Budget
}

export interface EncryptedToken {
  jwe: Jwe
  given: Given
  budget: Budget
}

export async function checkNewToken(
  input: Given,
  tools: CheckTools,
  budget = new Budget(tools.turns),
): Promise<NewToken> {
  const checked = await prepareGiven(input, tools, budget)
  const intent = input.token_intent_id ?? undefined
  return intent === undefined ? checked : { intent: intent as string, given: input, budget }
}

/** Like {@link checkNewToken}, but if the input contains the id of a token intent, returns a draft without data. */
export async function prepareGiven(input: Given, tools: CheckTools, budget = new Budget(tools.turns)) {
  const draft = await prepareToken(input, await readRules(input, tools, budget))
  return isGiven(input.encrypted) ? { jwe: readJwe(input.encrypted)!, given: input, budget } : draft
}

/**
 * Returns the budget that remains for the update.
 * @throws CofferError `validation`, `too_much_work`
 */
export async function checkTokenPatch(patch: Given, tools: CheckTools) {
  const budget = new Budget(tools.turns)
  await checkPatch(patch, await readRules(patch, tools, budget))
  return budget
}

async function readRules({ expires_at }: Given, tools: CheckTools, budget: Budget): Promise<TokenRules> {
  // The time must be read from the store, so it is read only if there is an expiry.
  const now = expires_at === undefined || expires_at === null ? 0 : await tools.now()
  return { expressions: await tools.expressions(), budget, now }
}

/**
 * In no-reveal mode, a caller must not apply expressions to data that the caller did not send.
 * @throws CofferError `forbidden`
 */
export function refuseExpressions({ caller }: Context, given: Given, names: readonly string[]): void {
  const name = caller.isNoReveal && names.find((each) => given[each] !== undefined)
  if (name) throw noRevealError(`${name} here, because its expressions may show data`)
}
