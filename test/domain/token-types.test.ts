import fc from 'fast-check'
import t from 'tap'
import {
  findTokenType,
  isAbaValid,
  isLuhnValid,
  readData,
  TOKEN_TYPE_NAMES,
  TOKEN_TYPES,
  validateData,
} from '../../src/domain/token/token-types.js'
import { CofferError, type PropertyErrors } from '../../src/errors.js'

const luhn = 'must be a card number with a valid check digit (Luhn)'
const aba = 'must be an ABA routing number with a valid checksum'
const digits = (amount: string) => `must be a string of ${amount} digits, no separators`
const cardOnly = 'only these properties are allowed: number, expiration_month, expiration_year, cvc'
const bankOnly = 'only these properties are allowed: routing_number, account_number'
const cardShape = 'must be an object with the properties number, expiration_month, expiration_year, cvc'

const TAKEN: [type: string, data: unknown][] = [
  ['token', ''],
  ['token', 0],
  ['token', false],
  ['token', []],
  ['token', { any: [null, { thing: 'SECRET' }] }],
  ['card', { number: '4242424242424242' }],
  ['card', { number: '378282246310005', expiration_month: 1, expiration_year: 2030, cvc: '1234' }],
  ['card', { number: '4242424242424242', cvc: 123 }],
  ['card', { number: '4242424242424242', cvc: 9999 }],
  ['card', { number: '36227206271667', expiration_month: 12, expiration_year: 9999, cvc: '123' }],
  ['card', { number: '000000000000' }],
  ['card', { number: '4242424242424242', expiration_month: null, expiration_year: null, cvc: null }],
  ['bank', { routing_number: '021000021', account_number: '1' }],
  ['bank', { routing_number: '110000000', account_number: '12345678901234567' }],
  ['card_number', '5555555555554444'],
  ['card_number', '6304000000000000000'],
  ['us_bank_account_number', '123'],
  ['us_bank_account_number', '12345678901234567'],
  ['us_bank_routing_number', '122105155'],
  ['social_security_number', '123456789'],
  ['social_security_number', '123-45-6789'],
  ['employer_id_number', '123456789'],
  ['employer_id_number', '12-3456789'],
]

const ssn = 'must be a string of nine digits, plain or as 3-2-4 with hyphens'
const ein = 'must be a string of nine digits, plain or as 2-7 with a hyphen'
const month = 'must be an integer from 1 to 12'
const year = 'must be an integer from 1000 to 9999'
const cvc = digits('3 to 4')

const REFUSED: [type: string, data: unknown, errors: PropertyErrors][] = [
  ['token', null, { data: ['must not be null; a token holds a value'] }],
  ['card', null, { data: ['must not be null; a token holds a value'] }],
  ['token', undefined, { data: ['is required'] }],
  ['card', '4242424242424242', { data: [cardShape] }],
  ['card', ['4242424242424242'], { data: [cardShape] }],
  ['card', {}, { 'data.number': ['is required'] }],
  ['card', { number: null }, { 'data.number': [digits('12 to 19')] }],
  ['card', { number: 4242424242424242 }, { 'data.number': [digits('12 to 19')] }],
  ['card', { number: '4242 4242 4242 4242' }, { 'data.number': [digits('12 to 19')] }],
  ['card', { number: '4242-4242-4242-4242' }, { 'data.number': [digits('12 to 19')] }],
  ['card', { number: '42424242424' }, { 'data.number': [digits('12 to 19')] }],
  ['card', { number: '42424242424242424242' }, { 'data.number': [digits('12 to 19')] }],
  ['card', { number: '٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢' }, { 'data.number': [digits('12 to 19')] }],
  ['card', { number: '4242424242424242\n' }, { 'data.number': [digits('12 to 19')] }],
  ['card', { number: '4242424242424241' }, { 'data.number': [luhn] }],
  ['card', { number: '4242424242424242', expiration_month: 0 }, { 'data.expiration_month': [month] }],
  ['card', { number: '4242424242424242', expiration_month: 13 }, { 'data.expiration_month': [month] }],
  ['card', { number: '4242424242424242', expiration_month: 1.5 }, { 'data.expiration_month': [month] }],
  ['card', { number: '4242424242424242', expiration_month: '12' }, { 'data.expiration_month': [month] }],
  ['card', { number: '4242424242424242', expiration_year: 30 }, { 'data.expiration_year': [year] }],
  ['card', { number: '4242424242424242', expiration_year: 10000 }, { 'data.expiration_year': [year] }],
  ['card', { number: '4242424242424242', expiration_year: '2030' }, { 'data.expiration_year': [year] }],
  ['card', { number: '4242424242424242', cvc: '12' }, { 'data.cvc': [cvc] }],
  ['card', { number: '4242424242424242', cvc: '12345' }, { 'data.cvc': [cvc] }],
  ['card', { number: '4242424242424242', cvc: 99 }, { 'data.cvc': [cvc] }],
  ['card', { number: '4242424242424242', cvc: 10000 }, { 'data.cvc': [cvc] }],
  ['card', { number: '4242424242424242', cvc: -123 }, { 'data.cvc': [cvc] }],
  ['card', { number: '4242424242424242', cvc: 12.5 }, { 'data.cvc': [cvc] }],
  ['card', { number: '4242424242424242', cvc: true }, { 'data.cvc': [cvc] }],
  ['card', { number: '4242424242424242', holder: 'Ada' }, { 'data.holder': [cardOnly] }],
  ['card', { number: '4242424242424242', toString: 'Ada' }, { 'data.toString': [cardOnly] }],
  ['card', { number: '4242424242424242', '5555555555554444': 1 }, { data: [cardOnly] }],
  [
    'card',
    { number: '1', expiration_month: 'x', cvc: '', extra: null },
    {
      'data.number': [digits('12 to 19')],
      'data.expiration_month': [month],
      'data.cvc': [cvc],
      'data.extra': [cardOnly],
    },
  ],
  ['bank', {}, { 'data.routing_number': ['is required'], 'data.account_number': ['is required'] }],
  ['bank', { routing_number: '021000022', account_number: '1' }, { 'data.routing_number': [aba] }],
  ['bank', { routing_number: '000000000', account_number: '1' }, { 'data.routing_number': [aba] }],
  ['bank', { routing_number: '02100002', account_number: '1' }, { 'data.routing_number': [digits('9')] }],
  ['bank', { routing_number: 21000021, account_number: '1' }, { 'data.routing_number': [digits('9')] }],
  [
    'bank',
    { routing_number: '021000021', account_number: '' },
    { 'data.account_number': [digits('1 to 17')] },
  ],
  [
    'bank',
    { routing_number: '021000021', account_number: '123456789012345678', name: 'x' },
    { 'data.account_number': [digits('1 to 17')], 'data.name': [bankOnly] },
  ],
  ['card_number', '4242424242424241', { data: [luhn] }],
  ['card_number', { number: '4242424242424242' }, { data: [digits('12 to 19')] }],
  ['us_bank_account_number', '12', { data: [digits('3 to 17')] }],
  ['us_bank_account_number', '12-34', { data: [digits('3 to 17')] }],
  ['us_bank_routing_number', '122105156', { data: [aba] }],
  ['us_bank_routing_number', '1221051555', { data: [digits('9')] }],
  ['social_security_number', '12345678', { data: [ssn] }],
  ['social_security_number', '1234-5-6789', { data: [ssn] }],
  ['social_security_number', '123-456789', { data: [ssn] }],
  ['social_security_number', 123456789, { data: [ssn] }],
  ['employer_id_number', '123-456789', { data: [ein] }],
  ['employer_id_number', '12-345678', { data: [ein] }],
]

t.test('data that its type allows is taken', async (t) => {
  for (const [type, data] of TAKEN)
    t.strictSame(validateData(findTokenType(type), data), {}, `${type} ${JSON.stringify(data)}`)
})

t.test('each fault of the data is named under its property, without its value', async (t) => {
  for (const [type, data, errors] of REFUSED) {
    t.strictSame(validateData(findTokenType(type), data), errors, `${type} ${JSON.stringify(data)}`)
  }
})

t.test('optional members that are null are not kept', async (t) => {
  const card = { number: '4242424242424242', expiration_month: null, cvc: '123' }
  t.strictSame(readData(findTokenType('card'), card), { number: '4242424242424242', cvc: '123' })
  const withInteger = readData(findTokenType('card'), { ...card, expiration_month: 12, cvc: 123 })
  t.strictSame(withInteger, { number: '4242424242424242', expiration_month: 12, cvc: '123' })
  t.strictSame(readData(findTokenType('token'), { a: null }), { a: null })
  t.throws(() => readData(findTokenType('card'), {}), {
    code: 'validation',
    errors: { 'data.number': ['is required'] },
  })
})

t.test('an unknown type is answered with the known ones', async (t) => {
  t.strictSame(
    TOKEN_TYPES.map(({ name }) => name),
    TOKEN_TYPE_NAMES,
  )
  for (const name of ['', 'Card', 'constructor', 'card ', 'pan']) {
    try {
      findTokenType(name)
      t.fail(name)
    } catch (error) {
      t.ok(error instanceof CofferError)
      t.equal(
        (error as CofferError).message,
        'must be one of token, card, bank, card_number, us_bank_account_number, us_bank_routing_number, social_security_number, employer_id_number',
      )
    }
  }
})

t.test('each type brings the defaults of the decisions', async (t) => {
  const reveal = '{{ data | reveal_last: 4 }}'
  const parts = ['{{ data }}', "{{ data | remove: '-' }}", '{{ data | last4 }}']
  const expected = {
    token: ['/general/high/', '{{ data | stringify }}', undefined, undefined],
    card: [
      '/pci/high/',
      '{{ data.number }}',
      {
        number: '{{ data.number | reveal_last: 4 }}',
        expiration_month: '{{ data.expiration_month }}',
        expiration_year: '{{ data.expiration_year }}',
      },
      undefined,
    ],
    bank: [
      '/bank/high/',
      '{{ data.account_number }}|{{ data.routing_number }}',
      {
        routing_number: '{{ data.routing_number }}',
        account_number: '{{ data.account_number | reveal_last: 4 }}',
      },
      undefined,
    ],
    card_number: ['/pci/high/', '{{ data }}', reveal, undefined],
    us_bank_account_number: ['/bank/high/', '{{ data }}', reveal, undefined],
    us_bank_routing_number: ['/bank/low/', '{{ data }}', reveal, undefined],
    social_security_number: ['/pii/high/', "{{ data | remove: '-' }}", reveal, parts],
    employer_id_number: ['/pii/high/', "{{ data | remove: '-' }}", reveal, parts],
  }
  for (const type of TOKEN_TYPES) {
    const { containers, fingerprint_expression, mask, search_indexes } = type
    t.strictSame(
      [containers[0], fingerprint_expression, mask, search_indexes],
      expected[type.name],
      type.name,
    )
    t.equal(containers.length, 1)
  }
})

t.test('the checksums tell published numbers from others', async (t) => {
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

t.test('the checksums notice every single wrong digit', async () => {
  const digit = fc.integer({ min: 0, max: 9 })
  const withLuhn = fc.array(digit, { minLength: 11, maxLength: 18 }).map((start) => {
    const last = [...Array(10).keys()].find((check) => isLuhnValid([...start, check].join('')))
    return [...start, last!]
  })
  const withAba = fc.array(digit, { minLength: 8, maxLength: 8 }).map((start) => {
    // The ninth digit has weight 1.
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
