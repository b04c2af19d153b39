import t from 'tap'
import { argNames } from '../../src/page/arg-names.js'

t.test('the form of a reactor proposes the arguments that its code reads', async (t) => {
  const table: [code: string, names: string[]][] = [
    ['module.exports = async ({ args }) => ({ raw: { hello: args.name } })', ['name']],
    ['const { card, amount: sum = 1 } = args\nreturn card.number', ['card', 'amount']],
    ['const { card } = req.args; return args?.other + args.card', ['card', 'other']],
    ['module.exports = async ({ args }) => ({ raw: args })', []],
    ['const { a } = configuration', []],
    ['', []],
  ]
  for (const [code, names] of table) t.same(argNames(code), names, code)
})
