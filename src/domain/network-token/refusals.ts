/** `again`: the advice of the service about a retry. */
interface Refusal {
  reason: string
  again: 'no' | 'once' | 'with new data'
}

export const REFUSALS = {
  CARD_DATA_MISSING: {
    reason:
      'The token or token intent needs a card with a number, an expiration month and an expiration year.',
    again: 'with new data',
  },
  CARD_NUMBER_LENGTH_INVALID: {
    reason: 'The number of the card must have 13 to 16 digits.',
    again: 'with new data',
  },
  PROVISION_DATA_EXPIRED: { reason: 'The data of the card has expired.', again: 'with new data' },
  CARD_VERIFICATION_FAILED: { reason: 'The issuer could not verify the card.', again: 'with new data' },
  CARD_NOT_ELIGIBLE: { reason: 'The network gives out no network token for this card.', again: 'no' },
  CARD_NOT_ALLOWED: { reason: 'The issuer does not allow network tokens for this card.', again: 'no' },
  CARD_DECLINED: { reason: 'The issuer declined the card.', again: 'no' },
  PROVISION_NOT_ALLOWED: { reason: 'The issuer does not allow this network token.', again: 'no' },
  CARD_ELIGIBILITY_ERROR: { reason: 'The network could not check the card.', again: 'once' },
} as const satisfies Record<string, Refusal>

export type RefusalCode = keyof typeof REFUSALS

const ADVICE: Readonly<Record<Refusal['again'], string>> = {
  no: 'Do not send the request again.',
  once: 'Send the request once more, and not again after that.',
  'with new data': 'Send the request again with other data of the card.',
}

export function explainRefusal(code: RefusalCode): string {
  const { reason, again }: Refusal = REFUSALS[code]
  return `${reason} ${ADVICE[again]}`
}
