/** A refusal of an address, divided into its reason and the option that permits the address. */
import t from 'tap'
import { adviseAllowNet, divideRefusal } from '../../src/domain/allow-net-advice.js'

const REASON = 'The destination cannot be called: the host a.example is not on the list of --allow-net.'
const TEXTS: [text: string, divided: ReturnType<typeof divideRefusal>][] = [
  [REASON + adviseAllowNet('a.example'), { reason: REASON, option: '--allow-net a.example' }],
  [REASON + adviseAllowNet('[::1]:8080'), { reason: REASON, option: '--allow-net [::1]:8080' }],
  [REASON, { reason: REASON }],
  ['', { reason: '' }],
]
for (const [text, divided] of TEXTS)
  t.test(`the refusal ${JSON.stringify(text)} is divided`, async (t) => {
    t.same(divideRefusal(text), divided)
  })
