import type { Transform } from '../../domain/access/permissions.js'
import { formatDate, parseExpiry } from '../../domain/dates.js'
import { Budget } from '../../domain/expression/budget.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { about } from '../../domain/property-errors.js'
import type {
  ApplePayRecord,
  GooglePayRecord,
  Wallet,
  WalletMerchantRecord,
} from '../../domain/records/wallet-record.js'
import { binLength, brandOf, CARD_BRANDS } from '../../domain/token/card-number.js'
import { prepareToken, type TokenDraft } from '../../domain/token/token.js'
import { findTokenType } from '../../domain/token/token-types.js'
import { invalid } from '../../errors.js'
import type { Caller } from '../../framework/caller/caller.js'
import type { Context } from '../../framework/context.js'
import type { CheckTools } from '../../framework/declaration.js'
import { absent } from '../../framework/no-reveal.js'
import { count, enumOf, object, text } from '../../framework/output.js'

type WalletRecord = GooglePayRecord | ApplePayRecord

export const WALLET_NAMES: Readonly<Record<Wallet, string>> = { google: 'Google Pay', apple: 'Apple Pay' }

const ONLY_READ = 'Absent in the answer that creates the card.'

export const cardOutputs = {
  card: object({
    bin: {
      ...text,
      description: 'The first 8 digits, or the first 6 of a number with fewer than 16 digits.',
    },
    last4: text,
    expiration_month: count,
    expiration_year: count,
    'brand?': enumOf(...CARD_BRANDS),
  }),
  'data?': {
    description: `${ONLY_READ} Without the permission to reveal, the number is masked.`,
    ...object({ number: text, expiration_month: count, expiration_year: count }),
  },
  'authentication?': {
    description: `${ONLY_READ} Without the permission to reveal, the cryptogram is masked.`,
    ...object({ threeds_cryptogram: text, eci_indicator: text }),
  },
  fingerprint: { ...text, inNoReveal: absent },
} as const

/** Access rules treat the card of a wallet like a card token in its default containers. */
export const CONTAINERS = findTokenType('card').containers

export const expiresAt = {
  type: 'string',
  duration: 'ahead',
  description: 'When the card expires: M/D/YYYY, M/D/YYYY h:mm:ss AM +hh:mm, or ISO 8601.',
} as const

export const merchantRegistrationId = {
  type: 'string',
  description:
    'The id of a merchant that is registered for the wallet. The merchant must exist. The id has no other effect.',
} as const

/** @throws CofferError `validation` */
export async function checkExpiry(
  expires_at: string | undefined,
  tools: CheckTools,
): Promise<number | undefined> {
  if (expires_at === undefined) return undefined
  const now = await tools.now()
  return about('expires_at', () => parseExpiry(expires_at, now))
}

/** @throws CofferError `validation` if the wallet has no merchant with this id */
export async function requireRegistration(
  { store, caller }: Context,
  wallet: Wallet,
  id: string | undefined,
): Promise<WalletMerchantRecord | undefined> {
  if (id === undefined) return undefined
  const merchant = await store.get('wallet_merchant', caller.tenant, id)
  if (merchant?.wallet === wallet) return merchant
  throw invalid(
    'merchant_registration_id',
    `refers to a merchant of ${WALLET_NAMES[wallet]} that does not exist`,
  )
}

/** Checks a card by the rules of tokens of the type card. @throws CofferError `validation` */
export async function prepareCard(
  data: object,
  { expressions, turns }: Pick<CheckTools, 'expressions' | 'turns'>,
): Promise<TokenDraft> {
  const rules = { expressions: await expressions(), budget: new Budget(turns), now: 0 }
  return prepareToken({ type: 'card', data }, rules)
}

/** Returns the attributes that all records of wallets share. `expires`: ms since the epoch. */
export async function makeRecord(context: Context, draft: TokenDraft, expires: number | undefined) {
  const { store, caller } = context
  return {
    id: context.createUuid(),
    tenant_id: (await context.tenant()).id,
    data: draft.record.data as WalletRecord['data'],
    fingerprint: await store.fingerprint(caller.tenant, draft.fingerprintText),
    ...omitUndefined({ expires_at: expires === undefined ? undefined : formatDate(expires) }),
    created_by: caller.actor.id,
    created_at: context.date,
  }
}

/**
 * Without the permission to reveal, the card is masked. An access rule for the containers of cards can be stricter.
 * Requires: the caller has one of the permissions `read` and `reveal`.
 */
export function decideShown(
  caller: Caller,
  area: 'google-pay' | 'apple-pay',
  { id }: WalletRecord,
): Transform {
  const decide = (action: 'read' | 'reveal') =>
    caller.transform(`${area}:${action}`, { id, containers: CONTAINERS })
  return decide('reveal') ?? decide('read') ?? 'mask'
}

export function viewCard({ data, fingerprint }: WalletRecord) {
  const { number, expiration_month, expiration_year } = data
  return {
    card: {
      bin: number.slice(0, binLength(number.length)),
      last4: number.slice(-4),
      expiration_month,
      expiration_year,
      ...omitUndefined({ brand: brandOf(number) }),
    },
    fingerprint,
  }
}

/** Returns the number and the cryptogram, unless `shown` is `redact`. */
export function viewSecrets(
  { data, authentication }: WalletRecord,
  shown: Transform,
): Partial<Pick<WalletRecord, 'data' | 'authentication'>> {
  if (shown === 'redact') return {}
  if (shown === 'reveal') return { data, authentication }
  const { number } = data
  const { threeds_cryptogram } = authentication
  return {
    data: { ...data, number: 'X'.repeat(number.length - 4) + number.slice(-4) },
    authentication: { ...authentication, threeds_cryptogram: 'X'.repeat(threeds_cryptogram.length) },
  }
}
