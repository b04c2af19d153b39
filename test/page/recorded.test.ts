import t from 'tap'
import { markHidden, refill } from '../../src/page/recorded.js'

t.test(
  'in a recorded body, hidden values are replaced by placeholders that the person must fill in',
  async (t) => {
    const table: [recorded: unknown, shown: unknown][] = [
      ['(16 characters)', '<16 characters>'],
      [
        { type: 'card', data: { number: '(16 characters)' } },
        { type: 'card', data: { number: '<16 characters>' } },
      ],
      [{ data: { number: '(number)', '…': '(2 more)' } }, { data: { number: '<number>' } }],
      [
        { id: 'one', containers: ['/pci/high/'] },
        { id: 'one', containers: ['/pci/high/'] },
      ],
      [null, null],
    ]
    for (const [recorded, shown] of table) t.strictSame(markHidden(recorded), shown, JSON.stringify(recorded))
  },
)

t.test('sample data of its type completes a recorded body', async (t) => {
  const example = { mask: '{{ data | reveal_last: 4 }}' }
  const table: [recorded: unknown, completed: unknown][] = [
    [
      { type: 'card_number', data: '(16 characters)' },
      { type: 'card_number', data: '4242424242424242' },
    ],
    [{ data: { number: '(16 characters)' } }, { data: 'a secret' }],
    [
      { data: '(object)', mask: '(9 characters)' },
      { data: 'a secret', mask: example.mask },
    ],
    [{ metadata: { name: '(3 characters)', '…': '(1 more)' } }, { metadata: { name: '<3 characters>' } }],
    [
      { id: 'one', type: 'token' },
      { id: 'one', type: 'token' },
    ],
    ['(7 characters)', example],
  ]
  for (const [recorded, completed] of table)
    t.strictSame(refill(recorded, example), completed, JSON.stringify(recorded))
})
