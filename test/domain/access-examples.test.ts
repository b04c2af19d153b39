/** The example data of the access matrix, and the texts of its cells. */
import t from 'tap'
import { describeSeen, headlineOf, type SeenCell } from '../../src/domain/access/cell-text.js'
import { examplesOf, exampleTypeOf } from '../../src/domain/token/example-data.js'
import { findTokenType, TOKEN_TYPE_NAMES, validateData } from '../../src/domain/token/token-types.js'

t.test('each type has example data that is valid', async (t) => {
  for (const name of TOKEN_TYPE_NAMES)
    for (const data of examplesOf(name)) t.same(validateData(findTokenType(name), data), {}, name)
})

const TYPES: [container: string, type: string][] = [
  ['/', 'card'],
  ['/pci/', 'card'],
  ['/pci/high/', 'card'],
  ['/pci/high/eu/', 'card'],
  ['/pci/custom/', 'card'],
  ['/bank/', 'bank'],
  ['/bank/low/', 'us_bank_routing_number'],
  ['/pii/high/', 'social_security_number'],
  ['/general/high/', 'token'],
  ['/customers/42/', 'token'],
]
for (const [container, type] of TYPES)
  t.test(`the example for the unused container ${container} is a ${type}`, async (t) => {
    t.equal(exampleTypeOf(container), type)
  })

const TEXTS: [cell: SeenCell, mask: Parameters<typeof describeSeen>[1], text: string | undefined][] = [
  [{ sees: 'plain', example: 'text' }, 'none', 'text'],
  [{ sees: 'plain', example: { number: '4242424242424242', cvc: '123' } }, 'shown', '4242424242424242'],
  [{ sees: 'masked', example: { routing_number: '1', account_number: 'XX2' } }, 'shown', 'XX2'],
  [{ sees: 'masked', example: { email: { at: ['a', 'b'] } } }, 'shown', '["a","b"]'],
  [{ sees: 'masked', example: {} }, 'shown', '{}'],
  [{ sees: 'masked', example: 7 }, 'shown', '7'],
  [{ sees: 'masked' }, 'none', 'hidden: no mask'],
  [{ sees: 'masked' }, 'other', 'as its mask shows'],
  [{ sees: 'redacted' }, 'shown', undefined],
  [{ sees: 'none' }, 'none', undefined],
]
for (const [cell, mask, text] of TEXTS)
  t.test(`a cell ${JSON.stringify(cell)} with mask ${mask} shows ${text}`, async (t) => {
    t.equal(describeSeen(cell, mask), text)
  })

t.test('an object with deep values has a short text', async (t) => {
  t.equal(headlineOf({ a: { b: { c: 'x' } } }), 'x')
})
