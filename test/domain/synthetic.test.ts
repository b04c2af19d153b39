import fc from 'fast-check'
import t from 'tap'
import { createDraw, generateData, replaceData } from '../../src/domain/token/synthetic.js'
import { findTokenType, TOKEN_TYPE_NAMES, validateData } from '../../src/domain/token/token-types.js'

const type = fc.constantFrom(...TOKEN_TYPE_NAMES)

t.test('generated data is valid, and equal seeds give equal data', async (t) => {
  fc.assert(
    fc.property(type, fc.string(), (name, seed) => {
      const data = generateData(name, createDraw(seed))
      t.same(data, generateData(name, createDraw(seed)))
      t.same(validateData(findTokenType(name), data), {}, name)
    }),
    { numRuns: 300 },
  )
  const draw = createDraw('1')
  const many = Array.from({ length: 200 }, () => generateData('card', draw))
  t.ok(new Set(many.map((card) => JSON.stringify(card))).size > 190, 'cards differ')
})

t.test('generated card, tax, bank and phone numbers cannot belong to a person', async (t) => {
  const draw = createDraw('x')
  for (let run = 0; run < 100; run++) {
    t.match(generateData('card_number', draw), /^(4242|4111|5555|2223|6011|3782)/)
    t.match(generateData('social_security_number', draw), /^9\d\d-[1-4]\d-\d{4}$/)
    t.match(generateData('employer_id_number', draw), /^00-/)
    t.match(generateData('us_bank_routing_number', draw), /^1100000/)
    t.match(generateData('token', draw), { email: /@example\.com$/, phone: /555-01\d\d$/ })
  }
})

t.test('replacement data depends on the shape of the original data and not on its content', async (t) => {
  fc.assert(
    fc.property(fc.json(), fc.string(), (text, seed) => {
      const data = JSON.parse(text) as unknown
      const replaced = JSON.stringify(replaceData('token', data, createDraw(seed)))
      t.equal(shapeOf(JSON.parse(replaced)), shapeOf(data))
    }),
  )
  const twins = ['Ada 1815', 'Bob 2042'].map((data) => replaceData('token', data, createDraw('s')))
  t.equal(twins[0], twins[1], 'data of equal shape has equal replacements')
  const card = { number: '4242424242424242', expiration_year: 2030 }
  const made = replaceData('card', card, createDraw('s'))
  t.same(Object.keys(made as object).sort(), ['expiration_year', 'number'], 'no property is added')
  t.same(validateData(findTokenType('card'), made), {})
})

function shapeOf(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => {
    if (typeof item === 'string')
      return item
        .replaceAll(/\p{Lu}/gu, 'A')
        .replaceAll(/\p{L}/gu, 'a')
        .replaceAll(/\p{N}/gu, '0')
    return typeof item === 'number' ? 0 : typeof item === 'boolean' ? true : item
  }).replaceAll('A', 'a')
}
