/** When Coffer stores code with an image other than node-bt, it checks whether this code can run. */
import t from 'tap'
import { openTestVault } from '../../src/index.js'

const GOOD = 'module.exports = async () => ({ res: { body: 1 } })'
const runtime = { image: 'node22' } as const

for (const [code, message] of [
  ['module.exports = async () => {\n\n  return {', /^The code is not valid at line 3, column 11: /],
  ['import x from "y"\nexport default 1', /write `const x = require\("y"\)` instead/],
  ['with (x) {}; module.exports = 1', /not valid at line 1, column 1: 'with' in strict mode/],
  ['const f = async () => 1', /The code exports no function; set module\.exports to one\.$/],
] as const)
  t.test(`a reactor fails with code_invalid: ${JSON.stringify(code)}`, async (t) => {
    await using vault = await openTestVault()
    const made = await vault.ask('reactor create', { name: 'r', code, runtime })
    t.match(made, {
      state: 'failed',
      requested: {
        error_code: 'code_invalid',
        error_message: message,
        error_details: { code: [{ line: Number, column: Number, message: String }] },
        reactor: { code },
      },
    })
    await t.rejects(vault.ask('reactor react', { id: made.id }), {
      status: 422,
      message: 'The reactor is not ready: failed.',
    })
    await vault.ask('reactor patch', { id: made.id, code: GOOD })
    const repaired = await vault.ask('reactor get', { id: made.id })
    t.match(repaired, { state: 'active', requested: undefined })
    await vault.ask('reactor patch', { id: made.id, code })
    t.match(await vault.ask('reactor get', { id: made.id }), { state: 'outdated', code: GOOD })
    t.match(
      await vault.ask('reactor react', { id: made.id }),
      { res: { body: 1 } },
      'the version before runs',
    )

    const transforms = [{ type: 'code', code, options: { runtime } }]
    const proxy = { name: 'p', destination_url: 'https://a.example', response_transforms: transforms }
    const made2 = await vault.ask('proxy create', proxy as never)
    t.match(made2, { state: 'failed', requested: { error_code: 'code_invalid' } })
  })

t.test('reactor code that compiles is not refused, whatever the code does', async (t) => {
  await using vault = await openTestVault()
  for (const code of [
    GOOD,
    "'use strict'; const module2 = 1; exports.default = () => 1",
    'return; module.exports = 1',
    'module.exports = () => { throw new Error() }',
    'module.exports = () => 1; for (;;) {}',
  ])
    t.equal((await vault.ask('reactor create', { name: 'r', code, runtime })).state, 'active', code)
})

t.test('with the image node-bt, invalid code is stored, and its run fails', async (t) => {
  await using vault = await openTestVault()
  const { id, state } = await vault.ask('reactor create', { name: 'r', code: 'module.exports = {' })
  t.equal(state, 'active')
  await t.rejects(vault.ask('reactor react', { id, args: {} }), { code: 'formula_invalid' })
})
