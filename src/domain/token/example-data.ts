/**
 * Made-up data that shows what a caller would see. The card is a published test card. The other numbers belong to
 * nobody.
 */
import { containerAncestors } from '../access/container.js'
import { TOKEN_TYPES, type TokenTypeName } from './token-types.js'

const CARD_NUMBER = '4242424242424242'
const ROUTING_NUMBER = '110000000'
const ACCOUNT_NUMBER = '000123456789'

/**
 * A generic token has no fixed shape. Therefore there are two examples: an object, and a text for masks that expect
 * text.
 */
const EXAMPLES: Readonly<Record<TokenTypeName, readonly unknown[]>> = {
  token: [
    { name: 'Ada Example', email: 'ada.example@example.com', phone: '(212) 555-0123' },
    'ada.example@example.com',
  ],
  card: [{ number: CARD_NUMBER, expiration_month: 12, expiration_year: 2040, cvc: '123' }],
  bank: [{ routing_number: ROUTING_NUMBER, account_number: ACCOUNT_NUMBER }],
  card_number: [CARD_NUMBER],
  us_bank_account_number: [ACCOUNT_NUMBER],
  us_bank_routing_number: [ROUTING_NUMBER],
  social_security_number: ['900-12-3456'],
  employer_id_number: ['00-1234567'],
}

export function examplesOf(type: TokenTypeName): readonly unknown[] {
  return EXAMPLES[type]
}

/**
 * For a container that no token uses. Chooses the type whose usual container is in `container`, or at least in the same
 * top-level container. For `/`, the type is `card`.
 */
export function exampleTypeOf(container: string): TokenTypeName {
  const [, top = '/'] = containerAncestors(container).toReversed()
  const structured = TOKEN_TYPES.filter(({ name }) => name !== 'token')
  const near = [container, top].flatMap((start) =>
    structured.filter(({ containers }) => containers.some((usual) => usual.startsWith(start))),
  )
  return near[0]?.name ?? 'token'
}
