/** What the cases of `fixtures/operations` (token-*.json) cannot show of tokens. */
import t from 'tap'
import { computeHmac } from '../../src/crypto/native.js'
import { Budget } from '../../src/domain/expression/budget.js'
import { Expressions } from '../../src/domain/expression/expression.js'
import type { TokenRecord } from '../../src/domain/records/records.js'
import { patchToken, prepareToken, type TokenDraft } from '../../src/domain/token/token.js'
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

function recordOf(draft: TokenDraft): TokenRecord {
  return {
    ...draft.record,
    id: 'token-id',
    tenant_id: 'tenant',
    fingerprint: 'print',
    created_by: 'maker',
    created_at: '2026-11-20T00:00:00.000+00:00',
  }
}

const CARD = {
  type: 'card',
  data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030, cvc: '123' },
}
t.test('a refusal counts the complaints beyond the first', async (t) => {
  const message = await prepare({ ...CARD, data: { number: '1', cvc: '1' } }).catch((error) => error.message)
  t.equal(
    message,
    'data.number: must be a string of 12 to 19 digits, no separators, with a valid check digit (Luhn) (and 1 more)',
  )
})

t.test('the length of an id is counted in code points, and no half of a character is in one', async (t) => {
  for (const id of ['abc', 'a'.repeat(400), '😀'.repeat(400), 'it\'s (a) :;,.!$*@~`"-_ é']) requireTokenId(id)
  for (const id of ['😀'.repeat(401), 'a'.repeat(1_000_000), 'ab\ud800c'])
    t.match(await errorsOf(prepare({ type: 'token', data: 1, id })), {
      id: [/^must (?:have 3 to 400|not contain)/],
    })
})

t.test('an alias is drawn again for every collision', async (t) => {
  const alias = '{{ data | alias_preserve_format: 0, 4 }}'
  const { id } = await prepare({ type: 'token', data: '123-45-6789', id: alias })
  if (id?.kind !== 'alias') throw new Error('no alias')
  const drawn = [id.draw(), id.draw()]
  for (const each of drawn) t.match(each, /^\d{3}-\d{2}-6789$/)
  t.not(drawn[0], drawn[1])
})

t.test('a mask is bounded in size, and its expressions in work together', async (t) => {
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
  await t.resolves(prepare({ type: 'token', data: 'x'.repeat(100_000), mask: many }), 'no work but a copy')
})

t.test('an expiry is kept by a patch that says nothing of it, even when it is over', async (t) => {
  const before = recordOf(await prepare({ type: 'token', data: 1, expires_at: '2026-11-21' }))
  const later = { ...rules, now: Date.UTC(2027, 0, 1) }
  t.equal((await patchToken(before, { metadata: { a: 'b' } }, later)).expires, Date.UTC(2026, 10, 21))
  const { record, expires } = await patchToken(before, { expires_at: '1/2/2028' }, later)
  t.equal(record.expires_at, '2028-01-02T00:00:00.000+00:00')
  t.equal(expires, Date.UTC(2028, 0, 2))
  const never = await patchToken(before, { expires_at: null }, later)
  t.notOk('expires' in never || 'expires_at' in never.record)
  t.match(await errorsOf(patchToken(before, { expires_at: '11/21/2026' }, later)), {
    expires_at: [/^must be in the future/],
  })
})

t.test('a token is shown in the order of the specification, without what has no value', async (t) => {
  const full: TokenRecord = {
    ...recordOf(
      await prepare({
        ...CARD,
        metadata: { a: '1' },
        search_indexes: ['x'],
        deduplicate_token: true,
        expires_at: '1/1/2030',
      }),
    ),
    modified_by: 'changer',
    modified_at: '2026-11-20T00:00:01.000+00:00',
  }
  const order =
    'id tenant_id type data mask fingerprint containers metadata privacy created_by created_at modified_by modified_at ' +
    'search_indexes fingerprint_expression expires_at card'
  t.equal(Object.keys(viewToken(full, 'reveal')).join(' '), order)
  const plain = viewToken(recordOf(await prepare({ type: 'token', data: 1 })), 'reveal')
  const least =
    'id tenant_id type data fingerprint containers privacy created_by created_at fingerprint_expression'
  t.equal(Object.keys(plain).join(' '), least)
})

t.test('no complaint shows a value', async (t) => {
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
