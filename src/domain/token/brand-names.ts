import { brandOf } from './card-number.js'

type Brand = NonNullable<ReturnType<typeof brandOf>>

/** The names as the service spells them. */
export const BRAND_NAMES = {
  visa: 'Visa',
  mastercard: 'Mastercard',
  'american-express': 'American Express',
  discover: 'Discover',
  'diners-club': 'Diners Club',
  jcb: 'JCB',
  unionpay: 'UnionPay',
} as const satisfies Record<Brand, string>

/** `digits`: a card number, or the first digits of a card number. */
export function brandNameOf(digits: string) {
  const brand = brandOf(digits)
  return brand && BRAND_NAMES[brand]
}
