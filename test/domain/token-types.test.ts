/** Behaviour of token types that the cases in `fixtures/operations/token-types.json` do not cover. */
import fc from 'fast-check'
import t from 'tap'
import { binLength, brandOf } from '../../src/domain/token/card-number.js'
import { isLuhnValid } from '../../src/domain/token/luhn.js'
import { findTokenType, isAbaValid, validateData } from '../../src/domain/token/token-types.js'

t.test(
  'digits in token data must be ASCII, and an error does not repeat a name that may be a value',
  async (t) => {
    const number = '4242424242424242'
    const errorsOf = (data: unknown) => Object.keys(validateData(findTokenType('card'), data))
    for (const each of ['٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢', `${number}\n`, '4242 4242 4242 4242', 4242424242424242])
      t.strictSame(errorsOf({ number: each }), ['data.number'], String(each))
    t.strictSame(errorsOf({ number, toString: 'Ada' }), ['data.toString'])
    t.strictSame(errorsOf({ number, '5555555555554444': 1 }), ['data'])
    for (const name of ['', 'Card', 'constructor', 'card '])
      t.throws(() => findTokenType(name), /must be one of/)
  },
)

t.test('the checksums accept published numbers and refuse other numbers', async (t) => {
  const cards = [
    '4242424242424242',
    '4000056655665556',
    '2223003122003222',
    '378282246310005',
    '3056930009020004',
  ]
  for (const number of cards) t.ok(isLuhnValid(number), number)
  for (const number of ['021000021', '011401533', '091000019', '122105155']) t.ok(isAbaValid(number), number)
  t.notOk(isAbaValid('000000000'))
})

t.test('the checksums detect every change of a single digit', async () => {
  const digit = fc.integer({ min: 0, max: 9 })
  const withLuhn = fc.array(digit, { minLength: 11, maxLength: 18 }).map((start) => {
    const last = [...Array(10).keys()].find((check) => isLuhnValid([...start, check].join('')))
    return [...start, last!]
  })
  const withAba = fc.array(digit, { minLength: 8, maxLength: 8 }).map((start) => {
    // The missing ninth digit has the weight 1.
    const sum = start.reduce((total, value, index) => total + value * [3, 7, 1][index % 3]!, 0)
    return [...start, (10 - (sum % 10)) % 10]
  })
  const checks: [fc.Arbitrary<number[]>, (text: string) => boolean][] = [
    [withLuhn, isLuhnValid],
    [withAba.filter((all) => all.some((value) => value !== 0)), isAbaValid],
  ]
  for (const [numbers, isValid] of checks) {
    fc.assert(
      fc.property(numbers, fc.nat(), fc.integer({ min: 1, max: 9 }), (valid, place, shift) => {
        const at = place % valid.length
        const wrong = valid.map((value, index) => (index === at ? (value + shift) % 10 : value))
        return isValid(valid.join('')) && !isValid(wrong.join(''))
      }),
    )
  }
})

t.test(
  'the brand is correct at the first and the last prefix of every range, and just outside of the range',
  async (t) => {
    const rows: [brand: string | undefined, ...digits: string[]][] = [
      ['visa', '4000', '4999'],
      ['mastercard', '5100', '5599', '2221', '2229', '2230', '2299', '2300', '2699', '2700', '2719', '2720'],
      ['american-express', '3400', '3499', '3700', '3799'],
      ['discover', '6011', '6440', '6499', '6500', '6599'],
      ['diners-club', '3000', '3059', '3095', '3600', '3699', '3800', '3999'],
      ['jcb', '3088', '3528', '3529', '3530', '3589'],
      ['unionpay', '6200', '6299', '8100', '8199'],
      [undefined, ...'2220 2721 5000 5600 3060 3094 3096 3500 3527 3590 6010 6012'.split(' ')],
      [undefined, '6100', '6439', '6300', '6600', '8200', '0000', '1000', '7000', '9000', ''],
    ]
    for (const [brand, ...leading] of rows)
      for (const digits of leading) t.equal(brandOf(digits), brand, digits)
  },
)

t.test('a BIN has 8 digits, or 6 digits if the number has fewer than 16', async (t) => {
  t.strictSame([12, 15, 16, 19].map(binLength), [6, 6, 8, 8])
})
