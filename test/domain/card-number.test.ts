import t from 'tap'
import { binLength, brandOf } from '../../src/domain/token/card-number.js'

t.test('the first and last leading digits of every brand, and those beside them', async (t) => {
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
})

t.test('a BIN has 8 digits, or 6 where the number has fewer than 16', async (t) => {
  t.strictSame([12, 15, 16, 19].map(binLength), [6, 6, 8, 8])
})
