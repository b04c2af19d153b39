import t from 'tap'
import { describeDraft, markHidden, markPath, refill } from '../../src/page/recorded.js'

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

t.test('a recorded body is completed with sample data of its type', async (t) => {
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

t.test('a hidden part of a path becomes a placeholder', async (t) => {
  const table: [recorded: string, shown: string][] = [
    ['/tokens/card-1', '/tokens/card-1'],
    ['/proxy/…', '/proxy/<rest of the path>'],
    ['/tokens/(16 digits)', '/tokens/<16 digits>'],
  ]
  for (const [recorded, shown] of table) t.equal(markPath(recorded), shown)
})

t.test('the note on a draft says whether the draft has placeholders or sample data', async (t) => {
  const table: [recorded: unknown, path: string, body: string | undefined, note: RegExp | undefined][] = [
    [undefined, '/tokens/card-1', undefined, undefined],
    [{ id: 'one' }, '/tokens', '{"id":"one"}', undefined],
    [{ card: '(31 characters)' }, '/proxy', '{"card":"<31 characters>"}', /Replace the <…> placeholders/],
    [undefined, '/proxy/<rest of the path>', undefined, /Replace the <…> placeholders/],
    [{ data: '(16 characters)' }, '/tokens', '{"data":"a secret"}', /sample data of the same type/],
  ]
  for (const [recorded, path, body, note] of table) {
    const told = describeDraft(recorded, path, body)
    if (note === undefined) t.equal(told, undefined, path)
    else t.match(told, note, path)
  }
})
