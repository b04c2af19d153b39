/** A share of the kills of the program that every run can afford; `npm run test:soak` does it at length. */
import t from 'tap'
import { killCommands } from './kill.js'

t.setTimeout(400_000)

t.test('servers and commands that are killed lose nothing that they acknowledged', async (t) => {
  const { kills, acknowledged, faults } = await killCommands(4_000)
  t.comment(JSON.stringify({ kills, acknowledged }))
  t.strictSame(faults, [])
  for (const victim of ['serve', 'rekey', 'compact', 'create']) t.ok(kills[victim], `${victim} was killed`)
  t.ok(acknowledged > 0, `${acknowledged} tokens were acknowledged`)
})
