import t from 'tap'
import { summarizeTokens } from '../../../src/cli/nouns/token.js'
import { formatAge } from '../../../src/cli/output/ages.js'

t.test('an age is shown in its longest unit, and an old or future time is shown as a date', async (t) => {
  const now = Date.parse('2030-03-01T00:00:00Z')
  for (const [date, age] of [
    ['2030-02-28T23:59:59.500+00:00', '0 s ago'],
    ['2030-02-28T23:59:01.000+00:00', '59 s ago'],
    ['2030-02-28T23:00:30.000+00:00', '59 min ago'],
    ['2030-02-28T01:00:00.000+00:00', '23 h ago'],
    ['2030-01-01T00:00:00.000+00:00', '59 d ago'],
    ['2029-01-01T00:00:00.000+00:00', '2029-01-01'],
    ['2031-01-01T00:00:00.000+00:00', '2031-01-01'],
  ] as const)
    t.equal(formatAge(date, now), age)
  const redacted = { id: 'x', type: 'card', mask: {}, containers: ['/pci/high/'], created_at: '2029-01-01' }
  t.match(summarizeTokens([redacted], now).rows, [{ shows: '(redacted)', containers: /^$/ }])
})
