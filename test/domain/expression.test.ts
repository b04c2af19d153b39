import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { computeHmac } from '../../src/crypto/native.js'
import { Budget } from '../../src/domain/expression/budget.js'
import {
  Expressions,
  type ExpressionUse,
  type Reference,
  type Scope,
} from '../../src/domain/expression/expression.js'
import { FILTERS } from '../../src/domain/expression/parse.js'
import { CofferError } from '../../src/errors.js'

interface Row {
  use: ExpressionUse
  expression: string
  scope?: { data?: unknown; metadata?: Record<string, string>; tokens?: Record<string, { data?: unknown }> }
  result?: unknown
  matches?: string
  error?: string
}

const table: { scope: NonNullable<Row['scope']>; rows: Row[] } = JSON.parse(
  readFileSync(new URL('../../../fixtures/expressions.json', import.meta.url), 'utf8'),
)

/** Replaces the random source by bytes that count up. The bytes differ from each other, and are equal in every run. */
function countingRandom() {
  let next = 0
  return { bytes: (count: number) => Uint8Array.from({ length: count }, () => next++ % 256) }
}

function scopeOf({ scope = table.scope }: Row): Scope {
  const { tokens, ...rest } = scope
  // The table refers to tokens by their ids.
  const referenceOf = (id: string) => (id.startsWith('token_intent:') ? id : `token:${id}`) as Reference
  const named = Object.entries(tokens ?? {}).map(([id, token]) => [referenceOf(id), token] as const)
  return tokens === undefined ? rest : { ...rest, tokens: new Map(named) }
}

async function refusal(work: () => unknown): Promise<string> {
  try {
    const result = await work()
    return `no refusal but ${JSON.stringify(result)}`
  } catch (error) {
    if (!(error instanceof CofferError)) return `not ours: ${error}`
    return error.code === 'validation' ? error.message : `${error.code}: ${error.message}`
  }
}

t.test('every row of the expression table is correct', async (t) => {
  const expressions = new Expressions(countingRandom(), computeHmac)
  t.ok(table.rows.length > 130, 'the table has been read')
  for (const row of table.rows) {
    const title = `${row.use}: ${row.expression}`
    const render = async () => (await expressions.compile(row.expression, row.use)).render(scopeOf(row))
    if (row.error !== undefined) t.equal(await refusal(render), row.error, title)
    else if (row.matches !== undefined)
      t.match(await render().catch(String), new RegExp(row.matches, 'u'), title)
    else t.strictSame(await render().catch(String), row.result, title)
  }
})

t.test('the table of expressions contains every filter', async (t) => {
  const used = table.rows.map(({ expression }) => expression).join(' ')
  for (const name of FILTERS.keys()) t.match(used, new RegExp(`\\| ${name}\\b`), name)
})

t.test('an expression has at most 400 characters, counted in code points', async (t) => {
  const expressions = new Expressions(countingRandom(), computeHmac)
  const longest = `{{ data }}${'😀'.repeat(390)}`
  t.equal((await expressions.compile(longest, 'mask')).render({ data: '' }), '😀'.repeat(390))
  const tooLong = 'an expression has at most 400 characters'
  t.equal(await refusal(() => expressions.compile(`${longest}x`, 'mask')), tooLong)
  t.equal(await refusal(() => expressions.compile('x'.repeat(1_000_000), 'mask')), tooLong)
  const argument = `${'x'.repeat(500)}{{ abc }}`
  const detokenization = await expressions.compile(argument, 'detokenize')
  t.equal(detokenization.render({ tokens: new Map([['token:abc', { data: 1 }]]) }), `${'x'.repeat(500)}1`)
})

t.test(
  'rendering an expression does not change the data, and the result shares no object with the data',
  async (t) => {
    const expressions = new Expressions(countingRandom(), computeHmac)
    const data = { list: [{ n: 2 }, { n: 1 }] }
    const rendered = (await expressions.compile('{{ data }}', 'mask')).render({ data }) as typeof data
    rendered.list[0]!.n = 9
    ;(await expressions.compile("{{ data.list | sort: 'n' | reverse }}", 'mask')).render({ data })
    t.strictSame(data, { list: [{ n: 2 }, { n: 1 }] })
  },
)

t.test(
  'reveal_last shows at most the requested number of characters, and keeps the length and the hyphens',
  async () => {
    const expressions = new Expressions(countingRandom(), computeHmac)
    const text = fc.string({ unit: fc.constantFrom('-', '1', 'a', 'é', '😀'), maxLength: 30 })
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 0, max: 12 }), async (data, count) => {
        const expression = await expressions.compile(`{{ data | reveal_last: ${count}, '#' }}`, 'mask')
        const before = [...data]
        const after = [...(expression.render({ data }) as string)]
        const shown = after.filter((character) => character !== '#' && character !== '-')
        const tail = Math.max(0, before.length - count)
        return (
          after.length === before.length &&
          shown.length <= count &&
          before.every((character, at) => character !== '-' || after[at] === '-') &&
          after.slice(tail).join() === before.slice(tail).join()
        )
      }),
      { numRuns: 100 },
    )
  },
)

t.test('card_mask and alias_card show the requested digits and no other digits of the number', async () => {
  const expressions = new Expressions({ bytes: (count) => new Uint8Array(count) }, computeHmac)
  const number = fc.string({ unit: fc.constantFrom('-', ' ', ...'123456789'), minLength: 1, maxLength: 30 })
  const digitsIn = (text: string) => text.replaceAll(/[^1-9]/g, '')
  await fc.assert(
    fc.asyncProperty(number, fc.boolean(), fc.boolean(), async (data, bin, last4) => {
      const digits = digitsIn(data)
      const first = bin ? (digits.length < 16 ? 6 : 8) : 0
      const last = last4 ? 4 : 0
      const shown = digits.slice(0, first) + digits.slice(digits.length - last)
      const render = async (filter: string, use: ExpressionUse) =>
        (await expressions.compile(`{{ data | ${filter}: ${bin}, ${last4} }}`, use)).render({
          data,
        }) as string
      const masked = await render('card_mask', 'mask')
      // The random digits of this test are always 0, so every digit that is not 0 comes from the number.
      const alias = await render('alias_card', 'id').catch(() => undefined)
      const isRefused = digits.length < Math.max(1, first + last)
      const expected = digits.length > first + last ? shown : ''
      const isHidden = masked.length === data.length && digitsIn(masked) === expected
      if (isRefused) return alias === undefined && isHidden
      const isSpaced = alias?.replaceAll(/[0-9]/g, '0') === data.replaceAll(/[0-9]/g, '0')
      return isHidden && isSpaced && digitsIn(alias!) === expected
    }),
    { numRuns: 300 },
  )
})

t.test('random bytes that would make some characters of an alias more likely are skipped', async (t) => {
  const drawn = [255, 254, 252, 234, 233, 0]
  const random = { bytes: (count: number) => Uint8Array.from({ length: count }, () => drawn.shift() ?? 1) }
  const expressions = new Expressions(random, computeHmac)
  const length = await expressions.compile('{{ data | alias_preserve_length }}', 'id')
  // 252 is the largest multiple of 36 that fits into a byte, so larger bytes are skipped. 234 % 36 = 18 (s), 233 % 36 =
  // 17 (r), and then 0 (a).
  t.equal(length.render({ data: '###' }), 'sra')
})

t.test('the work of an expression is limited by counting steps and not by time', async (t) => {
  const expressions = new Expressions(countingRandom(), computeHmac)
  const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1), b: [1, 2, 3] })
  const data = {
    text: 'a'.repeat(100_000),
    half: `${'a'.repeat(50_000)}b`,
    same: `${'a'.repeat(99_999)}b`,
    path: 'a.'.repeat(500),
    list: Array.from({ length: 20_000 }, (_, index) => ({ a: `x${index}` })),
    deep: deep(60),
  }
  const hostile = [
    "{{ data.text | replace: '', data.text }}",
    "{{ data.text | split: '' | join: data.text }}",
    `{{ data.list${' | concat: data.list'.repeat(15)} | size }}`,
    `{{ data.list${" | sort: 'a'".repeat(25)} | size }}`,
    "{{ data.deep | json: '$..*..*..*..*..*' }}",
    "{{ data.list | json: '$[*,*,*,*,*,*,*,*][*,*,*,*,*,*,*]' }}",
    ...['remove', 'remove_first', 'remove_last', 'split'].map(
      (name) => `{{ data.text | ${name}: data.half }}`,
    ),
    ...['replace', 'replace_first', 'replace_last'].map(
      (name) => `{{ data.text | ${name}: data.half, 'x' }}`,
    ),
    "{{ data.text | replace: 'a', data.half }}",
    ...['find', 'find_index', 'has', 'map', 'reject', 'sort', 'sort_natural', 'sum', 'where'].map(
      (name) => `{{ data.list | ${name}: data.path }}`,
    ),
    '{{ data | json: "$.list[?$.text == $.same]" }}',
  ]
  for (const text of hostile) {
    const expression = await expressions.compile(text, 'mask')
    t.match(await refusal(() => expression.render({ data })), /^too_much_work/, text)
  }
  const shared = new Budget()
  const cheap = await expressions.compile('{{ data.text | upcase | size }}', 'mask')
  const renderAgain = () => Array.from({ length: 200 }, () => cheap.render({ data }, shared))
  t.match(await refusal(renderAgain), /^too_much_work/, 'several renderings share one budget')
})

t.test('the error of a refused expression shows no part of the data', async (t) => {
  const expressions = new Expressions(countingRandom(), computeHmac)
  for (const { expression, use, error } of table.rows.filter((row) => row.error !== undefined)) {
    t.notMatch(error, /Sensitive|123-45|4242424242424242|3622/, expression)
    t.match(
      await refusal(async () => (await expressions.compile(expression, use)).render({ data: 'SECRET' })),
      /^(?!.*SECRET)/,
    )
  }
})
