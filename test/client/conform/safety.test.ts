/** Tests which cases may run on a server that contains data of other users. */
import t from 'tap'
import { readCases } from '../../../src/cli/commands/conform/read-cases.js'
import type { Case, Step } from '../../../src/client/conform/cases.js'
import { EFFECTS, judgeCase } from '../../../src/client/conform/safety.js'

const step = (operation: string, more: Partial<Step> = {}): Step => ({
  operation,
  expect: { status: 200 },
  ...more,
})
const create = (input: object, more: Partial<Step> = {}) =>
  step('token create', { input: { type: 'token', data: 'x', ...input }, expect: { status: 201 }, ...more })

t.test('every operation that the cases use has an entry in the table of effects', async (t) => {
  const used = new Set(readCases().flatMap(({ steps }) => steps.map(({ operation }) => operation)))
  t.same(
    [...used].filter((name) => EFFECTS[name] === undefined),
    [],
  )
  t.same(
    Object.keys(EFFECTS).filter((name) => !used.has(name)),
    [],
  )
})

const LEFT_OUT: [string, Step[]][] = [
  ['tenant', [step('tenant update', { input: { name: 'x' } })]],
  ['tenant', [step('tenant delete', { expect: { status: 400 } })]],
  ['tenant', [step('some future-operation')]],
  ['people', [step('member delete', { input: { id: '$id' } })]],
  ['sends', [step('invite create', { input: { email: 'a@example.com' } })]],
  ['sends', [step('webhook create', { input: { url: 'https://example.com' } })]],
  ['sends', [step('proxy call', { input: { target: '$key' } })]],
  ['remains', [step('3ds create', { input: { token_id: '$card' } })]],
  ['remains', [step('3ds create', { input: { token_id: '$card' }, expect: { status: 400 } })]],
  ['mode', [step('enrich card', { input: { bin: '424242' } })]],
  ['log', [step('log list')]],
  ['list', [step('token list')]],
  ['list', [step('token search', { input: { query: 'type:card' } })]],
  ['clock', [create({}, { waitMs: 1 })]],
  ['wait', [step('token get', { input: { id: '$id' }, untilFound: true })]],
  ['destination', [step('proxy create', { input: { destination_url: '$stub/x' } })]],
  ['deduplication', [create({ deduplicate_token: true })]],
  ['deduplication', [step('token tokenize', { input: { a: { type: 'token', deduplicate_token: true } } })]],
  ['code', [step('reactor create', { input: { code: 'module.exports = () => { while (true) {} }' } })]],
  ['code', [step('reactor create', { input: { code: 'module.exports = (r) => fetch(r.args.url)' } })]],
  [
    'response',
    [step('reactor react', { input: { id: '$id' }, expect: { status: 200, result: { res: {} } } })],
  ],
  [
    'code',
    [step('formula create', { input: { code: 'module.exports = ({ svc }) => svc.tokens.create({})' } })],
  ],
  ['owner', [step('app whoami')]],
  ['owner', [step('session authorize', { input: { nonce: '$n' }, expect: { status: 403 } })]],
  [
    'session',
    [
      step('session create', { as: 'page', save: { s: 'session_key' } }),
      step('token get', { input: { id: '$id' }, as: 's', expect: { status: 403 } }),
    ],
  ],
  ['id', [create({ id: 'has space' })]],
  ['id', [create({ id: 'token' })]],
  ['id', [create({ id: 'mine' }), step('token detokenize', { input: { a: '{{ mine }}' } })]],
  ['id', [step('token delete', { input: { id: '../x' }, expect: { status: 404 } })]],
  ['idempotency', [create({}, { idempotencyKey: 'x'.repeat(200) })]],
]

for (const [index, [reason, steps]] of LEFT_OUT.entries())
  t.test(`a case is left out for the reason ${reason} (${index + 1})`, async (t) => {
    t.same(judgeCase({ steps }), { isSafe: false, reason })
  })

t.test('a case that is not possible over HTTP is left out', async (t) => {
  t.same(judgeCase({ except: ['HTTP'], steps: [create({})] }), { isSafe: false, reason: 'interface' })
})

const SAFE: [string[], Step[]][] = [
  [[], [create({}), step('token get', { input: { id: '$id' } })]],
  [['mine'], [create({ id: 'mine' }), step('token delete', { input: { id: 'mine' } })]],
  [['nobody'], [step('token delete', { input: { id: 'nobody' }, expect: { status: 404 } })]],
  [['once'], [create({}, { idempotencyKey: 'once' })]],
  [[], [create({ id: 'has space' }, { expect: { status: 400 } })]],
  [[], [step('token list', { as: 'reader', expect: { status: 403 } })]],
]

for (const [own, steps] of SAFE)
  t.test(
    `a case is safe if these names are replaced: ${own.join(', ') || 'none'} (${steps[0]!.operation})`,
    async (t) => {
      t.same(judgeCase({ steps }), { isSafe: true, own })
    },
  )

t.test(
  'in a safe case, the ids in all paths are replaced, so the case cannot reach a record of other users',
  async (t) => {
    const safe = readCases().flatMap((each: Case) => {
      const verdict = judgeCase(each)
      return verdict.isSafe ? [{ ...each, own: verdict.own }] : []
    })
    t.ok(safe.length > 60, `${safe.length} cases are safe`)
    for (const { title, steps, own } of safe)
      for (const { operation, input = {} } of steps) {
        const { id } = input
        if (typeof id !== 'string' || EFFECTS[operation] !== 'own') continue
        t.ok(id.startsWith('$') || own.includes(id), `${title}: ${operation} ${id}`)
      }
  },
)
