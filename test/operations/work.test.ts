/** The limit on the work of a request's expressions. During this work, other requests get turns of the event loop. */
import t from 'tap'
import { Budget } from '../../src/domain/expression/budget.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import { perform } from '../../src/framework/perform.js'
import { openTestVault, requireOperation } from '../support/test-vault.js'

const { app, createApplication } = await openTestVault()
t.teardown(() => app.close())
const owner = await app.owner({ reveal: true })
const ask = async (name: string, input: Record<string, unknown>, caller = owner) =>
  (await perform(app, caller, requireOperation(name), input, 'trace')).result

const chain = (filter: string, count: number) => ` | ${filter}`.repeat(count)
const costly = `{{ data | pad_left: 9999,"x"${chain('reveal', 39)} }}`
const STEPS = /5,000,000 steps/
const TEXTS = /5,000 expressions, with at most 262,144 characters in total/
const tokens = (count: number, mask: string) =>
  Array.from({ length: count }, () => ({ type: 'token', data: 'x', mask }))

/** Calls `seen` in each turn of the event loop until `work` ends. */
async function eachTurn(work: Promise<unknown>, seen: () => void): Promise<void> {
  let isOver = false
  const next = () => {
    seen()
    if (!isOver) setImmediate(next)
  }
  setImmediate(next)
  await work.finally(() => {
    isOver = true
  })
}

await ask('token create', { id: 'abc', type: 'token', data: 'x' })
await ask('token create', { id: 'long', type: 'token', data: 'x'.repeat(990_000) })

t.test(
  'if the expressions of a request together exceed a limit, the request is refused, and the error names the limit',
  async (t) => {
    const list = <T>(length: number, make: (at: number) => T) => Array.from({ length }, (_, at) => make(at))
    const ofToken = (token: number) => {
      return { type: 'token', data: 'x', search_indexes: list(6, (at) => `${token}-${at}{{ data }}`) }
    }
    const over = (at: number) => `${at}{{ long${chain('reveal: 1,1', 14)} }}`
    const masks = list(50, () => `{{ data${chain('reveal', 39)} }}`)
    const refused: [title: string, operation: string, input: Record<string, unknown>, limit: RegExp][] = [
      ['masks of many tokens', 'token tokenize', { payload: tokens(50, costly) }, STEPS],
      ['filters over long tokens', 'token detokenize', { payload: list(15, over) }, STEPS],
      ['one text often', 'token detokenize', { payload: list(60_000, () => '{{ long | upcase }}') }, STEPS],
      ['the mask of an update', 'token update', { id: 'long', mask: masks }, STEPS],
      ['many expressions', 'token detokenize', { payload: list(60_000, (at) => `${at}{{abc}}`) }, TEXTS],
      ['many search indexes', 'token tokenize', { payload: list(900, ofToken) }, TEXTS],
      ['many filters', 'token detokenize', { payload: [`{{abc${'|size'.repeat(100_000)}}}`] }, TEXTS],
    ]
    for (const [title, operation, input, detail] of refused)
      await t.rejects(ask(operation, input), { code: 'too_much_work', status: 400, message: detail }, title)
    await t.rejects(ask('token detokenize', { payload: [`{{abc${'|size'.repeat(1000)}}}`] }), {
      code: 'validation',
      message: /an expression has at most 2000 characters/,
    })
  },
)

t.test('concurrent requests share the work limit of one turn of the event loop', async (t) => {
  const stepsByTurn = [0]
  const request = async () => {
    const budget = new Budget(app.turns)
    for (let left = 10; left > 0; left--) {
      if (budget.turns.isOver) await budget.turns.next()
      budget.use(300_000)
      stepsByTurn[stepsByTurn.length - 1]! += 300_000
    }
  }
  const all = Promise.all(Array.from({ length: 50 }, request))
  await eachTurn(all, () => stepsByTurn.push(0))
  // The counter can count the steps of two turns of the event loop as steps of one turn, so the test allows twice the
  // limit.
  t.ok(Math.max(...stepsByTurn) <= 2 * 1_300_000, `${Math.max(...stepsByTurn)} steps`)
})

t.test('a patch is refused if the token would then have more values than one request may have', async (t) => {
  const members = (from: number) =>
    Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`${from + index}`, 0]))
  const { id } = (await ask('token create', { type: 'token', data: members(0) })) as { id: string }
  await t.rejects(ask('token update', { id, data: members(20_000) }), {
    code: 'validation',
    message: /50,000 values/,
  })
  await ask('token update', { id, metadata: { a: 'b' } })
})

t.test('the expressions of a usual request stay below the work limit', async (t) => {
  const usual = tokens(1000, "{{ data | reveal_last: 4 }} of {{ data | split: '-' | first }}")
  t.equal(((await ask('token tokenize', { payload: usual })) as unknown[]).length, 1000)
  const copies = Array.from({ length: 15 }, () => '{{ long }}')
  t.equal(((await ask('token detokenize', { payload: copies })) as string[])[14]?.length, 990_000)
  const text = 'é-'.repeat(250_000)
  await t.resolves(ask('token create', { type: 'token', data: text, mask: '{{ data | reveal_last: 4 }}' }))
})

t.test('other requests can run between two tokens of a request, and between two expressions', async (t) => {
  const turnsDuring = async (work: Promise<unknown>) => {
    let turns = 0
    await eachTurn(work, () => turns++)
    return turns
  }
  const some = tokens(40, "{{ data | pad_left: 9999,'x' | reveal | reveal }}")
  t.ok((await turnsDuring(ask('token tokenize', { payload: some }))) >= 3, 'between tokens')
  const mask = some.map((each) => each.mask)
  const one = { type: 'token', data: 'x', mask }
  t.ok(
    (await turnsDuring(ask('token create', one))) >= 3,
    'there are turns between the expressions of a mask',
  )
})

t.test('the cost of a list of tokens grows linearly with the number of container sets', async (t) => {
  const rules = [
    { priority: 1, container: '/sets/', transform: 'mask' as const, permissions: ['token:read' as const] },
  ]
  const { key } = await createApplication('private', { rules })
  const caller = await authenticate(app, key)
  let made = 0
  const createSets = async (until: number) => {
    for (; made < until; made += 1000) {
      const payload = tokens(1000, 'x').map((each, at) => ({ ...each, containers: [`/sets/${made + at}/`] }))
      await ask('token tokenize', { payload })
    }
  }
  const measure = async (filter = {}) => {
    const times: number[] = []
    for (let run = 0; run < 4; run++) {
      const begun = performance.now()
      await ask('token list', { ...filter, size: 1 }, caller)
      times.push(performance.now() - begun)
    }
    return Math.min(...times)
  }
  await createSets(1000)
  const few = await measure()
  const prefixes = Array.from({ length: 100 }, (_, at) => `/${'sets/'.slice(0, 1 + (at % 5))}*`)
  const filtered = await measure({ container: prefixes })
  t.ok(filtered < 25 * few, `${few.toFixed()} ms for 1,000 sets, ${filtered.toFixed()} ms with 100 prefixes`)
  await createSets(8000)
  const many = await measure()
  t.ok(many < 25 * few, `${few.toFixed()} ms for 1,000 sets, ${many.toFixed()} ms for 8,000`)
})
