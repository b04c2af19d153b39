import fc from 'fast-check'
import t from 'tap'
import { formatDate, parseExpiry, parseLogDate } from '../../src/domain/dates.js'
import { refusal } from '../support/refusals.js'

const NOW = Date.UTC(2026, 10, 20, 12)

t.test('a log date is ISO 8601, and a bare date is midnight UTC', async (t) => {
  t.equal(parseLogDate('2020-02-29'), Date.UTC(2020, 1, 29))
  t.equal(parseLogDate('2020-02-29T10:00:00+01:00'), Date.UTC(2020, 1, 29, 9))
  const message = 'must be an existing ISO 8601 date such as 2030-08-27 or 2030-08-27T02:23:57Z'
  for (const text of ['8/27/2020', '2019-02-29', '', 'today'])
    t.match(
      refusal(() => parseLogDate(text)),
      { code: 'validation', message },
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
