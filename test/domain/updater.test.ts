/** The files and the test cards of the account updater. */
import t from 'tap'
import { brandOf } from '../../src/domain/token/card-number.js'
import { isLuhnValid } from '../../src/domain/token/luhn.js'
import { askNetwork } from '../../src/domain/updater/cards.js'
import {
  type FileHeader,
  MAX_LINES,
  readDate,
  readHeader,
  readRows,
} from '../../src/domain/updater/request-file.js'
import { RESULT_CODES } from '../../src/domain/updater/result-codes.js'
import { formatHeader, formatRow } from '../../src/domain/updater/result-file.js'
import { UPDATER_CARDS as published } from '../support/published-cards.js'

t.test(
  'published cards of the account updater have valid numbers, and no new number has an update',
  async (t) => {
    t.equal(published.length, 39)
    const numbers = published.map(({ number }) => number)
    t.equal(new Set(numbers).size, 39)
    for (const { number, new_number, result_code } of published) {
      t.ok(isLuhnValid(number), number)
      t.ok(RESULT_CODES.includes(result_code as (typeof RESULT_CODES)[number]), result_code)
      if (new_number === undefined) continue
      t.ok(isLuhnValid(new_number), new_number)
      t.equal(brandOf(new_number), brandOf(number), 'the new card has the same brand')
      t.notOk(numbers.includes(new_number))
    }
    const codes = new Set(published.map(({ result_code }) => result_code))
    const missing = RESULT_CODES.filter((code) => !codes.has(code))
    t.strictSame(missing, ['ERR_INVALID_TOKEN'], 'each code that is about a card has a card')
  },
)

t.test(
  'a card gives a warning if the account updater does not support its network for the kind of request',
  async (t) => {
    const ask = (number: string, isBatch: boolean) => askNetwork(number, { isBatch }).code
    t.equal(ask('4242424242424242', false), 'NO_UPDATE')
    t.equal(ask('6011000000000012', true), 'NO_UPDATE')
    t.equal(ask('6011111111111117', false), 'WRN_UNSUPPORTED_NETWORK')
    t.equal(ask('6011111111111117', true), 'UPD_PAN')
    t.equal(ask('3566002020360505', true), 'WRN_UNSUPPORTED_NETWORK')
    t.equal(ask('122000000000003', true), 'WRN_UNSUPPORTED_NETWORK')
  },
)

const read = (text: string, most = 100) => {
  const header = readHeader(text)
  if (typeof header === 'string') return header
  return readRows(text, header, header.end, most).rows
}

t.test(
  'a file of the account updater may have any order of columns, more fields, quotes, CRLF and a byte order mark',
  async (t) => {
    t.strictSame(read('token,expiration_year,expiration_month,merchant_id\na,,,\nb,30,02,,\n'), [
      { token: 'a', expiration_year: '', expiration_month: '' },
      { token: 'b', expiration_year: '30', expiration_month: '02' },
    ])
    t.strictSame(read('\ufeffexpiration_month, Token\r\n"1","a"\r\n\r\n2,"x""y, z\n"\r\n'), [
      { token: 'a', expiration_year: '', expiration_month: '1' },
      { token: 'x"y, z', expiration_year: '', expiration_month: '2' },
    ])
    t.strictSame(read('token\na'), [{ token: 'a', expiration_year: '', expiration_month: '' }])
    t.strictSame(
      read('token\n"a'),
      [{ token: 'a', expiration_year: '', expiration_month: '' }],
      'an open quote',
    )
  },
)

t.test('rows of a file are read in parts, and each part begins where the previous part ended', async (t) => {
  const text = 'token\na\n"b"\n\nc'
  const header = readHeader(text) as FileHeader
  const first = readRows(text, header, header.end, 2)
  t.strictSame(
    first.rows.map(({ token }) => token),
    ['a', 'b'],
  )
  const rest = readRows(text, header, first.end, 2)
  t.strictSame(
    rest.rows.map(({ token }) => token),
    ['c'],
  )
  t.equal(rest.end, text.length)
})

t.test('if a file of the account updater cannot be processed, the error says why', async (t) => {
  for (const text of ['', ' \n', '\ufeff']) t.equal(read(text), 'File cannot be empty')
  t.match(read('id\na\n'), /name the column token/)
  t.equal(read('token\n\n'), 'File has no rows')
  t.match(read(`token\n${'a\n'.repeat(MAX_LINES)}`), /more than 20000 lines/)
  t.equal(read(`token\n${'a\n'.repeat(MAX_LINES - 2)}`, MAX_LINES).length, MAX_LINES - 2)
})

t.test('an expiration date in a file has a year of two digits', async (t) => {
  const date = (expiration_year: string, expiration_month: string) =>
    readDate({ token: 'a', expiration_year, expiration_month })
  t.strictSame(date('30', '02'), { expiration_month: 2, expiration_year: 2030 })
  t.strictSame(date('', ''), { expiration_month: undefined, expiration_year: undefined })
  t.strictSame(date('2030', '13'), { expiration_month: Number.NaN, expiration_year: Number.NaN })
  t.strictSame(date('00', '12'), { expiration_month: 12, expiration_year: 2000 })
})

t.test(
  'the result of a batch has the columns of its version, and quotes fields that need quotes',
  async (t) => {
    const row = {
      token: 'a',
      expiration_year: '30',
      expiration_month: '02',
      code: 'UPD_PAN',
      new_token: 'b',
    } as const
    const more = { new_fingerprint: 'f', new_brand: 'visa', new_last4: '1234' }
    const head =
      'token,expiration_year,expiration_month,new_token,new_expiration_year,new_expiration_month,result_code'
    t.equal(formatHeader('1'), `${head}\n`)
    t.equal(formatHeader('1.1'), `${head},new_fingerprint,new_brand\n`)
    t.equal(formatHeader('1.2'), `${head},new_fingerprint,new_brand,new_last4\n`)
    t.equal(formatRow({ ...row, ...more }, '1'), 'a,30,02,b,,,UPD_PAN\n')
    t.equal(formatRow({ ...row, ...more }, '1.2'), 'a,30,02,b,,,UPD_PAN,f,visa,1234\n')
    const dated = { ...row, new_expiration_month: 3, new_expiration_year: 2026 }
    t.equal(formatRow(dated, '1'), 'a,30,02,b,26,03,UPD_PAN\n')
    t.equal(formatRow({ ...row, token: 'x"y,z' }, '1'), '"x""y,z",30,02,b,,,UPD_PAN\n')
  },
)
