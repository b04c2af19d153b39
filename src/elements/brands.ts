/** The card brands of the hosted fields. The packages of the hosted fields export this list as `DEFAULT_CARD_TYPES`. */

type Prefix = number | readonly [number, number]

/** A card brand, in the form of an item of the option `cardTypes`. `gaps` and `lengths` are numbers of digits. */
export interface CardBrand {
  readonly type: string
  readonly niceType: string
  readonly patterns: readonly Prefix[]
  readonly gaps: readonly number[]
  readonly lengths: readonly number[]
  readonly code: { readonly name: string; readonly size: number }
}

const GROUPS_OF_FOUR = [4, 8, 12]

export const BRANDS: readonly CardBrand[] = [
  {
    type: 'visa',
    niceType: 'Visa',
    patterns: [4],
    gaps: GROUPS_OF_FOUR,
    lengths: [16, 18, 19],
    code: { name: 'CVV', size: 3 },
  },
  {
    type: 'mastercard',
    niceType: 'Mastercard',
    patterns: [[51, 55], [2221, 2229], [223, 229], [23, 26], [270, 271], 2720],
    gaps: GROUPS_OF_FOUR,
    lengths: [16],
    code: { name: 'CVC', size: 3 },
  },
  {
    type: 'american-express',
    niceType: 'American Express',
    patterns: [34, 37],
    gaps: [4, 10],
    lengths: [15],
    code: { name: 'CID', size: 4 },
  },
  {
    type: 'diners-club',
    niceType: 'Diners Club',
    patterns: [[300, 305], 36, 38, 39],
    gaps: [4, 10],
    lengths: [14, 16, 19],
    code: { name: 'CVV', size: 3 },
  },
  {
    type: 'discover',
    niceType: 'Discover',
    patterns: [6011, [644, 649], 65],
    gaps: GROUPS_OF_FOUR,
    lengths: [16, 19],
    code: { name: 'CID', size: 3 },
  },
  {
    type: 'jcb',
    niceType: 'JCB',
    patterns: [2131, 1800, [3528, 3589]],
    gaps: GROUPS_OF_FOUR,
    lengths: [16, 17, 18, 19],
    code: { name: 'CVV', size: 3 },
  },
  {
    type: 'unionpay',
    niceType: 'UnionPay',
    patterns: [
      620,
      [62100, 62182],
      [62184, 62187],
      [62185, 62197],
      [62200, 62205],
      [622010, 622999],
      622018,
      [62207, 62209],
      [623, 626],
      6270,
      6272,
      6276,
      [627700, 627779],
      [627781, 627799],
      [6282, 6289],
      6291,
      6292,
      810,
      [8110, 8131],
      [8132, 8151],
      [8152, 8163],
      [8164, 8171],
    ],
    gaps: GROUPS_OF_FOUR,
    lengths: [14, 15, 16, 17, 18, 19],
    code: { name: 'CVN', size: 3 },
  },
  {
    type: 'maestro',
    niceType: 'Maestro',
    patterns: [493698, [500000, 504174], [504176, 506698], [506779, 508999], [56, 59], 63, 67, 6],
    gaps: GROUPS_OF_FOUR,
    lengths: [12, 13, 14, 15, 16, 17, 18, 19],
    code: { name: 'CVC', size: 3 },
  },
  {
    type: 'elo',
    niceType: 'Elo',
    patterns: [
      401178,
      401179,
      438935,
      457631,
      457632,
      431274,
      451416,
      457393,
      504175,
      [506699, 506778],
      [509000, 509999],
      627780,
      636297,
      636368,
      [650031, 650033],
      [650035, 650051],
      [650405, 650439],
      [650485, 650538],
      [650541, 650598],
      [650700, 650718],
      [650720, 650727],
      [650901, 650978],
      [651652, 651679],
      [655000, 655019],
      [655021, 655058],
    ],
    gaps: GROUPS_OF_FOUR,
    lengths: [16],
    code: { name: 'CVE', size: 3 },
  },
  {
    type: 'mir',
    niceType: 'Mir',
    patterns: [[2200, 2204]],
    gaps: GROUPS_OF_FOUR,
    lengths: [16, 17, 18, 19],
    code: { name: 'CVP2', size: 3 },
  },
  {
    type: 'hiper',
    niceType: 'Hiper',
    patterns: [637095, 63737423, 63743358, 637568, 637599, 637609, 637612],
    gaps: GROUPS_OF_FOUR,
    lengths: [16],
    code: { name: 'CVC', size: 3 },
  },
  {
    type: 'hipercard',
    niceType: 'Hipercard',
    patterns: [606282],
    gaps: GROUPS_OF_FOUR,
    lengths: [16],
    code: { name: 'CVC', size: 3 },
  },
]

/** Returns the brand whose prefix matches the most digits. Returns undefined if no brand matches. */
export function findBrand(digits: string, brands: readonly CardBrand[] = BRANDS): CardBrand | undefined {
  let found: { brand: CardBrand; length: number } | undefined
  for (const brand of brands)
    for (const prefix of brand.patterns) {
      const length = matchLength(digits, prefix)
      if (length > (found?.length ?? 0)) found = { brand, length }
    }
  return found?.brand
}

/** Returns how many digits match the prefix. Returns 0 if the digits do not match, or if there are too few digits. */
function matchLength(digits: string, prefix: Prefix): number {
  const [first, last] = typeof prefix === 'number' ? [prefix, prefix] : prefix
  const { length } = String(first)
  const start = Number(digits.slice(0, length))
  return digits.length >= length && start >= first && start <= last ? length : 0
}
