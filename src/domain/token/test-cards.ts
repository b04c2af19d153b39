/**
 * Numbers of test cards with special rules for tokens. The numbers are repeated here, because loading
 * `fixtures/cards.json` would slow down commands about tokens. A test compares the numbers with that file.
 */

/** Published numbers that fail the Luhn checksum, but are accepted. */
const NOT_LUHN = /^(?:42000000000000(?:0[2-9]|1[0-7])|6011601160116011|4100000000000003)$/

/** The documented test cards of 3-D Secure, except {@link DOCUMENTED_SERIES}. Each number is between commas. */
const DOCUMENTED =
  ',5204247750001471,6011601160116011,340000000004001,4000020000000000,370000000000002,3566002020360505,' +
  '3566006663297692,4761369980320253,5200000000001104,4005562231212123,4000000000000341,4005571701111111,' +
  '4111111111111111,5424180011113336,4264281511112228,5424180000000171,5405001111111165,5405001111111116,' +
  '4055011111111111,5427660064241339,6011361011110004,6011361000008888,6011361000001115,4264281500003339,' +
  '5424180011110001,4264281500001119,4150580996517927,'
const DOCUMENTED_SERIES = /^42000000000000(?:0[2-9]|1[0-7])$/

export function isAcceptedWithoutLuhn(number: string): boolean {
  return NOT_LUHN.test(number)
}

/** SCA is strong customer authentication. Programs start 3-D Secure only for cards that require SCA. */
export function isScaRequired(number: string): boolean {
  return DOCUMENTED.includes(`,${number},`) || DOCUMENTED_SERIES.test(number)
}
