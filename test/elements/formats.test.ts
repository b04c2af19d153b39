/** Checks how card fields format typed text, and which faults the fields find. */
import { createRequire } from 'node:module'
import t from 'tap'
import { BRANDS, findBrand } from '../../src/elements/brands.js'
import { formatNumber, type NumberOptions, readNumber } from '../../src/elements/card-number.js'
import { placeCaret } from '../../src/elements/caret.js'
import { toPage, toServer } from '../../src/elements/case.js'
import { formatDate, printDate, readDate } from '../../src/elements/expiration-date.js'
import { checkOptions } from '../../src/elements/options.js'
import { hideValues, resolveReference } from '../../src/elements/references.js'
import { formatText, readText } from '../../src/elements/text.js'
import { formatCode, readCode } from '../../src/elements/verification-code.js'

/** The middle of a month, in the time zone of the machine. */
const NOW = new Date(2030, 5, 15)

t.test(
  'the card brands are equal to the card brands of the package @basis-theory/web-elements',
  async (t) => {
    const { DEFAULT_CARD_TYPES } = createRequire(import.meta.url)('@basis-theory/web-elements')
    t.strictSame(BRANDS, DEFAULT_CARD_TYPES)
  },
)

t.test('the longest matching prefix of a card number decides the brand', async (t) => {
  const table = {
    '': undefined,
    4: 'visa',
    4011: 'visa',
    401178: 'elo',
    5: undefined,
    51: 'mastercard',
    2720: 'mastercard',
    2721: undefined,
    34: 'american-express',
    6: 'maestro',
    6011: 'discover',
    606282: 'hipercard',
    6370952: 'hiper',
    622018: 'unionpay',
    2204: 'mir',
    2205: undefined,
    305: 'diners-club',
    3589: 'jcb',
    9: undefined,
  }
  for (const [digits, type] of Object.entries(table)) t.equal(findBrand(digits)?.type, type, digits)
})

t.test('a typed card number is grouped and limited as its brand requires', async (t) => {
  const table = [
    ['4242424242424242', '4242 4242 4242 4242'],
    ['4242-4242 4242x4242', '4242 4242 4242 4242'],
    ['378282246310005', '3782 822463 10005'],
    ['3782822463100059', '3782 822463 10005'],
    ['36148900647913', '3614 890064 7913'],
    ['42424242424242424242', '4242 4242 4242 4242424'],
    ['4242', '4242'],
    ['42424', '4242 4'],
    ['90000', '9000 0'],
    ['', ''],
  ] as const
  for (const [typed, shown] of table) t.equal(formatNumber(typed, {}), shown, typed)
})

t.test('a card number is complete if it has a length of its brand and a valid checksum', async (t) => {
  const visa = BRANDS.filter(({ type }) => type === 'visa')
  const table: [string, NumberOptions, object][] = [
    [
      '4242 4242 4242 4242',
      {},
      { fault: undefined, card: { cardBrand: 'visa', cardLast4: '4242', cardBin: '42424242' } },
    ],
    ['378282246310005', {}, { fault: undefined, card: { cardLast4: '0005', cardBin: '378282' } }],
    [
      '4242424242424241',
      {},
      { fault: 'invalid', isComplete: false, card: { cardBrand: 'visa', cardLast4: undefined } },
    ],
    ['4242424242424241', { skipLuhnValidation: true }, { fault: undefined, isComplete: true }],
    ['42424242', {}, { fault: 'incomplete', isValid: false }],
    ['', {}, { fault: 'incomplete', isEmpty: true, card: { cardBrand: 'unknown' } }],
    ['122000000000003', {}, { fault: undefined, card: { cardBrand: 'unknown' } }],
    ['5555555555554444', { cardTypes: visa }, { fault: 'invalid', card: { cardBrand: 'unknown' } }],
    ['55555', { cardTypes: visa }, { fault: 'incomplete' }],
  ]
  for (const [text, options, reading] of table) t.match(readNumber(text, options), reading, text)
})

t.test('a typed expiration date becomes MM/YY', async (t) => {
  const table = [
    ['1', '1'],
    ['2', '02'],
    ['12', '12'],
    ['12/', '12/'],
    ['123', '12/3'],
    ['1230', '12/30'],
    ['12/30', '12/30'],
    ['1/30', '01/30'],
    ['13/30', '13/30'],
    ['00/30', '00/30'],
    ['12/2030', '12/30'],
    ['122030', '12/30'],
    ['12/203', '12/203'],
    ['12 / 30', '12/30'],
    ['12/3012', '12/30'],
    ['x', ''],
    ['', ''],
  ] as const
  for (const [typed, shown] of table) t.equal(formatDate(typed, {}), shown, typed)
  t.equal(formatDate('1230', { showSpacing: true }), '12 / 30')
})

t.test('a card is valid until the end of the month of its expiration date', async (t) => {
  const table = [
    ['06/30', {}, undefined],
    ['05/30', {}, 'invalid'],
    ['05/30', { maxElapsedExpirationYear: 1 }, undefined],
    ['06/29', { maxElapsedExpirationYear: 1 }, undefined],
    ['05/29', { maxElapsedExpirationYear: 1 }, 'invalid'],
    ['12 / 99', {}, undefined],
    ['13/30', {}, 'invalid'],
    ['00/30', {}, 'invalid'],
    ['13', {}, 'invalid'],
    ['12/3', {}, 'incomplete'],
    ['1', {}, 'incomplete'],
    ['', {}, 'incomplete'],
  ] as const
  for (const [text, options, fault] of table) t.equal(readDate(text, options, NOW).fault, fault, text)
})

t.test('an expiration date is printed with a pattern of Luxon, and other patterns are refused', async (t) => {
  const date = { month: 4, year: 2030 }
  const table = {
    'yyyy-MM': '2030-04',
    MM: '04',
    M: '4',
    'MM/yyyy': '04/2030',
    yy: '30',
    "'year' yyyy": 'year 2030',
    MMyy: '0430',
  }
  for (const [pattern, text] of Object.entries(table)) t.equal(printDate(date, pattern), text, pattern)
  for (const pattern of ['LLLL', 'dd', 'yyyy-MM-dd'])
    t.throws(() => printDate(date, pattern), {
      name: 'CofferElementsError',
      message: /date pattern "(LLLL|dd)"/,
    })
})

t.test('a verification code has the length that its brand requires', async (t) => {
  const table = [
    ['123', {}, '123', undefined],
    ['1234', {}, '1234', undefined],
    ['12', {}, '12', 'incomplete'],
    ['12345x', { cardBrand: 'american-express' }, '1234', undefined],
    ['123', { cardBrand: 'american-express' }, '123', 'incomplete'],
    ['1234', { cardBrand: 'visa' }, '123', undefined],
    ['1234', { cardBrand: 'unknown' }, '1234', undefined],
  ] as const
  for (const [typed, options, shown, fault] of table) {
    t.equal(formatCode(typed, options), shown, typed)
    t.equal(readCode(shown, options).fault, fault, typed)
  }
})

t.test('a mask adds its fixed characters, and drops typed characters that fit no slot', async (t) => {
  const digit = /\d/g
  const mask = [digit, digit, digit, '-', digit, digit, '-', digit, digit, digit, digit]
  const phone = ['(', digit, digit, ')', ' ', digit]
  const table = [
    ['1', mask, '1', 'incomplete'],
    ['123', mask, '123', 'incomplete'],
    ['1234', mask, '123-4', 'incomplete'],
    ['123-45-6789', mask, '123-45-6789', undefined],
    ['123456789', mask, '123-45-6789', undefined],
    ['1a2b3c456789000', mask, '123-45-6789', undefined],
    ['', mask, '', 'incomplete'],
    ['12', phone, '(12', 'incomplete'],
    ['123', phone, '(12) 3', undefined],
    ['x', phone, '', 'incomplete'],
    ['7', [digit, '%'], '7%', undefined],
  ] as const
  for (const [typed, mask, shown, fault] of table) {
    t.equal(formatText(typed, { mask }), shown, typed)
    t.match(readText(shown, { mask }), { fault, isMaskSatisfied: fault === undefined }, typed)
  }
})

t.test('a text field applies its validation, its maximum length and its transform', async (t) => {
  t.equal(formatText('abcdef', { maxLength: 3 }), 'abc')
  t.match(readText('', {}), {
    isEmpty: true,
    isComplete: false,
    fault: 'incomplete',
    isMaskSatisfied: undefined,
  })
  t.match(readText('x', {}), { value: 'x', isComplete: true, isValid: true })
  const validation = /^\d+$/g
  for (const text of ['1', '1', 'x']) {
    const isValid = text === '1'
    t.match(readText(text, { validation }), { isValid, fault: isValid ? undefined : 'invalid' }, text)
  }
  const table = [
    [/-/, '123456789'],
    [[/-/], '123456789'],
    [[/-/g, ' '], '123 45 6789'],
    [null, '123-45-6789'],
  ] as const
  for (const [transform, value] of table)
    t.equal(readText('123-45-6789', { transform }).value, value, String(transform))
})

t.test('after a card number is formatted, the caret is still behind the same digit', async (t) => {
  const table = [
    ['4242 4', 6, '4242 4', 6],
    ['42425', 5, '4242 5', 6],
    ['4243 2', 4, '4243 2', 4],
    ['14242 4242', 1, '1424 2424 2', 1],
    ['4242x 4', 5, '4242 4', 6],
  ] as const
  for (const [typed, caret, formatted, place] of table)
    t.equal(placeCaret(typed, caret, formatted), place, `${typed} ${caret}`)
})

t.test(
  'property names are translated between camel case and snake case, except in data and metadata',
  async (t) => {
    const model = {
      searchIndexes: ['aB'],
      deduplicateToken: true,
      data: { cardNumber: 1, expiration_month: 2 },
      metadata: { orderId: 'x' },
      privacy: { impactLevel: 'high', data: { innerName: 1 } },
    }
    const wire = {
      search_indexes: ['aB'],
      deduplicate_token: true,
      data: { cardNumber: 1, expiration_month: 2 },
      metadata: { orderId: 'x' },
      privacy: { impact_level: 'high', data: { inner_name: 1 } },
    }
    t.strictSame(toServer(model), wire)
    t.strictSame(toPage(wire), model)
    t.strictSame(toPage({ _extras: { tsp_details: null }, expires_at: 1 }), {
      _extras: { tspDetails: null },
      expiresAt: 1,
    })
    t.equal(toPage(undefined), undefined)
  },
)

t.test('responses to the page contain references in place of values', async (t) => {
  const hidden = hideValues({ number: '4242', list: [1, { on: false }], none: null }, 'data') as {
    number: { path: string }
    list: [{ path: string }, { on: object }]
  }
  t.notMatch(JSON.stringify(hidden), /4242|false/)
  t.match(hidden, { number: { path: 'data.number' }, list: [{ path: 'data.list[0]' }, {}], none: null })
  t.equal(resolveReference(hidden.number as never), '4242')
  t.equal(resolveReference(hidden.list[1].on as never), false)
  const bare = hideValues('text', '')
  t.equal(resolveReference(bare as never), 'text')
  for (const wrong of [{}, undefined, { ...hidden.number, elementId: 'x' }])
    t.throws(() => resolveReference(wrong as never), /no reference/)
  for (let answer = 0; answer < 100; answer++) hideValues('x', '')
  t.throws(() => resolveReference(bare as never), /older than the last 100 answers/)
})

t.test(
  'an option that Coffer does not support is refused by its name, unless the option is switched off',
  async (t) => {
    const missing = {
      enableCopy: true,
      binLookup: true,
      coBadgedSupport: ['bancontact'],
      preSelectedNetworks: ['visa'],
    }
    for (const [name, value] of Object.entries(missing))
      t.throws(() => checkOptions({ [name]: value }), {
        name: 'CofferElementsError',
        message: new RegExp(name),
      })
    t.doesNotThrow(() =>
      checkOptions({ enableCopy: false, binLookup: undefined, coBadgedSupport: [], unknown: 1 }),
    )
  },
)
