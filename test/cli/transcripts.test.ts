/** A share of the transcripts; `npm run test:soak transcripts` has all of them. */
import t from 'tap'
import { transcribe } from './transcripts.js'

t.setTimeout(400_000)

t.test('commands and their flags behave in a pipe and on terminals, wide and narrow', async (t) => {
  const { lines, faults } = await transcribe((at) => at % 50 === 0)
  t.ok(lines >= 8, `${lines} lines`)
  t.same(faults, [])
})
