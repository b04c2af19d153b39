import fc from 'fast-check'
import t from 'tap'
import { formatDate, parseExpiry, parseLogDate } from '../../src/domain/dates.js'
import { CofferError } from '../../src/errors.js'

const NOW = Date.UTC(2026, 10, 20, 12)

function refusal(work: () => unknown): string {
  try {
    return `no refusal but ${JSON.stringify(work())}`
  } catch (error) {
    return error instanceof CofferError && error.code === 'validation' ? error.message : `not ours: ${error}`
  }
}

t.test('an expiry is read in each of the formats', async (t) => {
  const table: [text: string, date: string][] = [
    ['8/27/2030 2:23:57 AM +00:00', '2030-08-27T02:23:57.000+00:00'],
    ['8/27/2030 2:23:57 PM -07:00', '2030-08-27T21:23:57.000+00:00'],
    ['08/27/2030 02:23:57 pm +05:30', '2030-08-27T08:53:57.000+00:00'],
    ['8/27/2030 2:23:57 AM', '2030-08-27T02:23:57.000+00:00'],
    ['8/27/2030 1:00:00 AM +05:59', '2030-08-26T19:01:00.000+00:00'],
    ['1/1/2030 12:00:00 AM +14:00', '2029-12-31T10:00:00.000+00:00'],
    ['1/1/2030 12:00:00 PM -12:00', '2030-01-02T00:00:00.000+00:00'],
    ['8/27/2030', '2030-08-27T00:00:00.000+00:00'],
    ['2/29/2028', '2028-02-29T00:00:00.000+00:00'],
    ['2030-08-27', '2030-08-27T00:00:00.000+00:00'],
    ['2030-08-27T02:23', '2030-08-27T02:23:00.000+00:00'],
    ['2030-08-27T02:23:57', '2030-08-27T02:23:57.000+00:00'],
    ['2030-08-27T02:23:57Z', '2030-08-27T02:23:57.000+00:00'],
    ['2030-08-27t02:23:57z', '2030-08-27T02:23:57.000+00:00'],
    ['2030-08-27T02:23:57.1239+02:00', '2030-08-27T00:23:57.123+00:00'],
    ['2030-08-27T02:23:57,5-0230', '2030-08-27T04:53:57.500+00:00'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999+00:00'],
  ]
  for (const [text, date] of table) t.equal(formatDate(parseExpiry(text, NOW)), date, text)
})

t.test('what is no date, or none that exists, is refused with the formats', async (t) => {
  const message =
    'must be an existing date, "M/D/YYYY h:mm:ss AM/PM +hh:mm" (without an offset: UTC), "M/D/YYYY" (12 AM UTC) or ISO 8601 such as 2030-08-27T02:23:57+00:00'
  const table = [
    '',
    'tomorrow',
    'now',
    '1914027837',
    '8/27/30',
    '27/8/2030',
    '2/29/2030',
    '2/30/2030',
    '0/1/2030',
    '1/0/2030',
    '13/1/2030',
    '8/27/2030 2:23 AM',
    '8/27/2030 0:23:57 AM',
    '8/27/2030 13:23:57 AM',
    '8/27/2030 2:60:57 AM',
    '8/27/2030 2:23:60 AM',
    '8/27/2030 14:23:57',
    '8/27/2030 2:23:57 AM +15:00',
    '8/27/2030 2:23:57 AM -13:00',
    '8/27/2030 2:23:57 AM +05:60',
    '8/27/2030 2:23:57 AM +05',
    ' 8/27/2030',
    '8/27/2030 ',
    '8/27/2030\n',
    '2030-8-27',
    '2030-02-30',
    '2030-13-01',
    '2030-08-27T24:00:00Z',
    '2030-08-27T02:23:57+14:01',
    '2030-08',
    '2030',
    '20300827',
    '2030-W35-2',
    '2030-239',
    '02:23:57',
    '٨/27/2030',
  ]
  for (const text of table)
    t.equal(
      refusal(() => parseExpiry(text, NOW)),
      message,
      JSON.stringify(text),
    )
})

t.test('an expiry lies in the future', async (t) => {
  const message = refusal(() => parseExpiry('11/20/2026 12:00:00 PM +00:00', NOW))
  t.match(message, /^must be in the future, written as "M\/D\/YYYY h:mm:ss/)
  t.equal(parseExpiry('2026-11-20T12:00:00.001Z', NOW), NOW + 1)
  t.match(
    refusal(() => parseExpiry('1/1/2000', NOW)),
    /^must be in the future/,
  )
  t.match(
    refusal(() => parseExpiry('0050-01-01', NOW)),
    /^must be in the future/,
    'years below 100 are themselves',
  )
})

t.test('a log date is ISO 8601, and a bare date is midnight UTC', async (t) => {
  t.equal(parseLogDate('2020-02-29'), Date.UTC(2020, 1, 29))
  t.equal(parseLogDate('2020-02-29T10:00:00+01:00'), Date.UTC(2020, 1, 29, 9))
  const message = 'must be an existing ISO 8601 date such as 2030-08-27 or 2030-08-27T02:23:57Z'
  for (const text of ['8/27/2020', '2019-02-29', '', 'today'])
    t.equal(
      refusal(() => parseLogDate(text)),
      message,
      text,
    )
})

t.test('what is written can be read', async () => {
  const instant = fc.integer({ min: NOW + 1, max: Date.UTC(9999, 11, 31) })
  fc.assert(
    fc.property(
      instant,
      (ms) => parseExpiry(formatDate(ms), NOW) === ms && parseLogDate(formatDate(ms)) === ms,
    ),
  )
})
