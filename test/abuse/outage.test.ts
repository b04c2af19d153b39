import t from 'tap'
import { runOutage } from './outage.js'

for (const [signal, title, end] of [
  ['SIGKILL', 'after a sudden death nothing that was acknowledged is missing', { signal: 'SIGKILL' }],
  ['SIGTERM', 'after a request to stop nothing that was accepted is dropped', { code: 0 }],
] as const)
  t.test(title, { timeout: 240_000 }, async (t) => {
    const { ended, wrong, missing, dropped, acknowledged, reads } = await runOutage({
      ...{ signal, connections: 50, seconds: 2 },
    })
    t.match(ended, end)
    t.same([wrong, missing], [[], []])
    if (signal === 'SIGTERM') t.equal(dropped, 0)
    t.ok(acknowledged > 50 && reads > 50, `${acknowledged} written, ${reads} read`)
  })
