/** A host with two runs that loop until a test kills the host, or until the runs reach their time limit. */

import { confineThisNode } from '../../../src/reactor/confinement.js'
import { DEFAULT_LIMITS } from '../../../src/reactor/settings.js'
import { createReactorPool } from '../../../src/reactor/start.js'

const pool = createReactorPool({
  confinement: await confineThisNode(),
  settings: { limits: { ...DEFAULT_LIMITS, timeMs: 1_000 } },
})
const spin = `module.exports = async ({ svc }) => { await svc.tokens.list({}); for (;;); }`

let started = 0
const client = async () => {
  started += 1
  if (started === 2) process.stdout.write('spinning\n')
  return {}
}
for (const reactor of ['a', 'b'])
  void pool.run({ tenant: 1, reactor, code: spin, args: {}, configuration: {}, client })
