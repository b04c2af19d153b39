import t from 'tap'
import { ALL_WITHHELD, GivenData, type Printed } from '../../src/domain/reactor/printed.js'
import { WITHHELD } from '../../src/domain/text/secrets.js'

const linesOf = (...texts: string[]) => texts.map((text) => ({ level: 'log', text }))

function scrub(printed: Partial<Printed>, ...given: unknown[]): Printed | undefined {
  const data = new GivenData()
  for (const each of given) data.add(each)
  return data.scrub({ console: [], ...printed })
}

const CARD = '4242424242424242'

t.test('output of code is shown if it contains no data, and is withheld if it contains data', async (t) => {
  const errors = { card: ['is declined', `not ${CARD}`], [CARD]: ['no'] }
  const printed = {
    console: linesOf('begun', `card ${CARD}`),
    detail: `about ${CARD}`,
    errors,
    stack: 'at reactor.js:3:1',
  }
  t.strictSame(scrub(printed, { number: CARD }, { KEY: 'configured' }), {
    console: linesOf('begun', WITHHELD),
    detail: WITHHELD,
    errors: { card: ['is declined', WITHHELD], [WITHHELD]: ['no'] },
    stack: 'at reactor.js:3:1',
  })
  t.strictSame(scrub(printed, {}), printed, 'without data')
  t.equal(scrub({}, { number: CARD }), undefined, 'the result is undefined if nothing was printed')
})

t.test(
  'output of code is shown even if data of the call equals the name of an internal property',
  async (t) => {
    const printed = { console: linesOf('one', 'two'), detail: 'three' }
    t.strictSame(scrub(printed, ['console', 'detail', 'text', 'level', 'log']), printed)
  },
)

t.test(
  'all output is withheld if it contains the data in pieces, or if the data or output exceeds the limits',
  async (t) => {
    const pieces = CARD.match(/.{4}/g)!
    t.strictSame(scrub({ console: linesOf(...pieces) }, CARD), ALL_WITHHELD)
    t.strictSame(scrub({ console: linesOf(...[...Buffer.from(CARD)].map(String)) }, CARD), ALL_WITHHELD)
    const long = 'x'.repeat(16 * 1024)
    t.strictSame(scrub({ console: linesOf('begun') }, long), ALL_WITHHELD)
    t.strictSame(scrub({ console: linesOf('begun') }, long, CARD), ALL_WITHHELD)
    t.strictSame(scrub({ console: linesOf('y'.repeat(8 * 1024)) }, CARD), ALL_WITHHELD)
  },
)
