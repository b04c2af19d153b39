import t from 'tap'
import { runOutage } from './outage.js'

for (const [signal, title, end] of [
  ['SIGKILL', 'after SIGKILL, no acknowledged change is missing', { signal: 'SIGKILL' }],
  ['SIGTERM', 'after SIGTERM, the server drops no accepted request', { code: 0 }],
] as const)
  t.test(title, { timeout: 240_000 }, async (t) => {
    const { ended, wrong, missing, dropped, acknowledged, reads } = await runOutage({
      ...{ signal, connections: 50, seconds: 2 },
    })
    t.match(ended, end)
    t.same([wrong, missing], [[], []])
    if (signal === 'SIGTERM') t.equal(dropped, 0)
    t.ok(acknowledged > 50 && reads > 50, `${acknowledged} tokens were written, ${reads} were read`)
  })
