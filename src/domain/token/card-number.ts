export function binLength(digitCount: number): number {
  return digitCount < 16 ? 6 : 8
}

const BRANDS = [
  ['visa', /^4/],
  ['mastercard', /^(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/],
  ['american-express', /^3[47]/],
  ['discover', /^(?:6011|64[4-9]|65)/],
  ['diners-club', /^(?:30[0-5]|3095|36|38|39)/],
  ['jcb', /^(?:3088|352[89]|35[3-8])/],
  ['unionpay', /^(?:62|81)/],
] as const

type CardBrand = (typeof BRANDS)[number][0]
export const CARD_BRANDS = BRANDS.map(([brand]) => brand)

export function brandOf(digits: string): CardBrand | undefined {
  return BRANDS.find(([, pattern]) => pattern.test(digits))?.[0]
}
