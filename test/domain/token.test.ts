/** Behaviour of tokens that the cases in `fixtures/operations` (token-*.json) do not cover. */
import t from 'tap'
import { computeHmac } from '../../src/crypto/native.js'
import { Budget } from '../../src/domain/expression/budget.js'
import { Expressions } from '../../src/domain/expression/expression.js'
import { prepareToken } from '../../src/domain/token/token.js'
import { requireTokenId } from '../../src/domain/token/token-rendering.js'
import type { CofferError } from '../../src/errors.js'
import { viewToken } from '../../src/operations/token/token-attributes.js'
import { refusalOf } from '../support/refusals.js'

const NOW = Date.UTC(2026, 10, 20)
let drawn = 0
const random = { bytes: (count: number) => Uint8Array.from({ length: count }, () => drawn++ % 250) }
const rules = {
  expressions: new Expressions(random, computeHmac),
  now: NOW,
  get budget() {
    return new Budget()
  },
}

const prepare = (input: Record<string, unknown>) => prepareToken(input, rules)

const errorsOf = async (work: Promise<unknown>) => (await refusalOf(work)).errors

const CARD = {
  type: 'card',
  data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' },
}
t.test('the error for an invalid token has the text of the first error and counts the others', async (t) => {
  const message = await prepare({ ...CARD, data: { number: '1', cvc: '1' } }).catch((error) => error.message)
  t.equal(
    message,
    'data.number: must be a string of 12 to 19 digits, no separators, with a valid check digit (Luhn) (and 1 more)',
  )
})

t.test('the length of an id is counted in code points, and an id has no lone surrogate', async (t) => {
  for (const id of ['abc', 'a'.repeat(400), '😀'.repeat(400), 'it\'s (a) :;,.!$*@~`"-_ é']) requireTokenId(id)
  for (const id of ['😀'.repeat(401), 'a'.repeat(1_000_000), 'ab\ud800c'])
    t.match(await errorsOf(prepare({ type: 'token', data: 1, id })), {
      id: [/^must (?:have 3 to 400|not contain)/],
    })
})

t.test('the size of a mask and the work of its expressions are limited', async (t) => {
  const limits = 'must have at most 4000 values and property names'
  const errorOf = (mask: unknown, data: unknown = 1) => errorsOf(prepare({ type: 'token', data, mask }))
  t.strictSame(await errorOf(Array.from({ length: 4000 }, () => 1)), { mask: [limits] })
  await prepare({ type: 'token', data: 1, mask: Array.from({ length: 3999 }, () => 1) })
  const many = Array.from({ length: 1500 }, () => '{{ data }}')
  const costly = prepare({
    type: 'token',
    data: 'x'.repeat(100_000),
    mask: many.map(() => '{{ data | reveal }}'),
  })
  await t.rejects(costly, { code: 'too_much_work' })
  await t.resolves(
    prepare({ type: 'token', data: 'x'.repeat(100_000), mask: many }),
    'copying data does not count as work',
  )
})

t.test('the properties of a token are in the documented order', async (t) => {
  const optional = {
    metadata: { a: '1' },
    search_indexes: ['x'],
    deduplicate_token: true,
    expires_at: '1/1/2030',
  }
  const { record } = await prepare({ ...CARD, ...optional })
  const created = { created_by: 'maker', created_at: '2026-11-20T00:00:00.000+00:00' }
  const modified = { modified_by: 'changer', modified_at: '2026-11-20T00:00:01.000+00:00' }
  const full = {
    ...modified,
    ...record,
    id: 'token-id',
    tenant_id: 'tenant',
    fingerprint: 'print',
    ...created,
  }
  const order =
    'id tenant_id type data mask fingerprint containers metadata privacy created_by created_at modified_by modified_at ' +
    'search_indexes fingerprint_expression expires_at card'
  t.equal(Object.keys(viewToken(full, 'reveal')).join(' '), order)
})

t.test('no error message about a token shows a value of its data', async (t) => {
  const secret = 'S3CRET-4242424242424242'
  const inputs = [
    { type: secret, data: secret },
    { type: 'card', data: { number: secret, cvc: secret, expiration_month: secret, [secret]: secret } },
    { type: 'bank', data: secret },
    {
      type: 'token',
      data: secret,
      id: `${secret}/`,
      containers: [secret],
      expires_at: secret,
      metadata: { a: [secret] },
    },
    {
      type: 'token',
      data: secret,
      mask: '{{ data | to_number }}',
      search_indexes: ['{{ data | to_boolean }}'],
    },
    { type: 'token', data: secret, id: '{{ data }}/', fingerprint_expression: '{{ data | json: data }}' },
  ]
  for (const input of inputs) {
    const error = await prepare(input).then(String, (refused: CofferError) =>
      JSON.stringify([refused.message, refused.errors]),
    )
    t.match(error, /must|cannot|takes|not a JSONPath/)
    t.notMatch(error, /S3CRET/)
  }
})
