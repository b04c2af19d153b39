import t from 'tap'
import { parseSearchQuery, type SearchQuery } from '../../src/domain/token/search-query.js'
import { refusal } from '../support/refusals.js'

/** Prints the tree of a query in prefix form, so that the precedence is visible. */
function format(query: SearchQuery | undefined): string {
  if (query === undefined) return 'everything'
  if (query.kind === 'equals') return `${query.field}=${query.value}`
  if (query.kind === 'not') return `not(${format(query.part)})`
  const at = (ms: number | undefined) => (ms === undefined ? '*' : new Date(ms).toISOString().slice(0, 23))
  if (query.kind === 'range') return `${query.range}=${at(query.from)} ${at(query.below)}`
  return `${query.kind}(${query.parts.map(format).join(', ')})`
}

const PARSED: [string, string][] = [
  ['  \n\t ', 'everything'],
  ['type:a OR type:b AND NOT type:c', 'or(type=a, and(type=b, not(type=c)))'],
  ['!!type:a', 'not(not(type=a))'],
  ['NOT(type:a)AND(type:b)', 'and(not(type=a), type=b)'],
  ['data:-5 AND data:a!b', 'and(data=-5, data=a!b)'],
  ['metadata.a.b:c:d', 'metadata.a.b=c:d'],
  ['data:"a \\"quote\\" and a \\\\"', 'data=a "quote" and a \\'],
  ['data:"a) AND (b"', 'data=a) AND (b'],
  ['metadata."first name":Ada', 'metadata.first name=Ada'],
  ['data:AND AND data:or', 'and(data=AND, data=or)'],
  ['data:ANDROID', 'data=ANDROID'],
  ['created_at:{2030-01-01T10:00:00Z TO *}', 'created=2030-01-01T10:00:00.001 *'],
  ['modified_at:[* TO "2030-02-01"]', 'modified=* 2030-02-02T00:00:00.000'],
  ['created_at:2030-01-01', 'created=2030-01-01T00:00:00.000 2030-01-02T00:00:00.000'],
]

const TERM = 'needs terms field:value joined by AND or OR, such as data:0005 for a search index'
const VALUE = 'needs a value after the colon, with every quote closed'

const REFUSED: [string, string][] = [
  ['6789', `${TERM.replace('0005', '6789')} (column 1)`],
  ['4242424242', `${TERM} (column 1)`],
  ['metadata.:here', 'names an unknown field'],
  ['type:a type:b', `${TERM} (column 8)`],
  ['type:a AND', 'ends where a term is needed (column 11)'],
  ['(type:a', 'needs AND, OR or a ) for each ( (column 8)'],
  ['type:a)', 'has a ) without a ( (column 7)'],
  ['data: 5', `${VALUE} (column 6)`],
  ['data:""', `${VALUE} (column 8)`],
  ['data:"open', `${VALUE} (column 6)`],
  ['created_at:[2030-01-01 TO 2030-02-01}', 'needs a range such as [2030-01-01 TO *] (column 12)'],
  ['created_at:{2030-01-01 TO soon}', 'needs ISO 8601 dates such as 2030-01-31 (column 1)'],
  [`${'('.repeat(51)}type:a${')'.repeat(51)}`, 'is nested more than 50 levels deep'],
  [`${'!'.repeat(51)}type:a`, 'is nested more than 50 levels deep'],
  [Array.from({ length: 51 }, () => 'type:a').join(' OR '), 'must have at most 50 terms'],
  [`data:${'x'.repeat(1996)}`, 'must have at most 2000 characters'],
]

t.test('queries are parsed with the precedence NOT, then AND, then OR', async (t) => {
  for (const [text, expected] of PARSED) t.equal(format(parseSearchQuery(text)), expected, text)
  t.ok(parseSearchQuery(Array.from({ length: 50 }, () => '(type:a)').join(' OR ')), '50 terms')
  t.ok(parseSearchQuery(`data:${'x'.repeat(1995)}`), '2,000 characters')
  t.ok(parseSearchQuery(`${'('.repeat(50)}type:a${')'.repeat(50)}`), '50 levels')
})

t.test('an error about a search query says what is wrong and where', async (t) => {
  for (const [text, message] of REFUSED) {
    const { code, errors } = refusal(() => parseSearchQuery(text))
    t.equal(code, 'validation')
    t.match(errors, { query: [message] }, text.slice(0, 40))
  }
})
