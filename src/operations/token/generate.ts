/** Creates synthetic tokens. */
import { createDraw, generateData } from '../../domain/token/synthetic.js'
import { TOKEN_TYPE_NAMES } from '../../domain/token/token-types.js'
import { operation } from '../../framework/operation.js'
import { Existing } from '../../framework/outcome.js'
import { arrayOf } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { type TokenView, tokenOutput } from './token-attributes.js'
import { checkNewToken, createFrom } from './token-write.js'

const MOST_GENERATED = 10_000
/** The number of tokens created in one unit of work. */
const AT_ONCE = 100

export const generateTokens = operation({
  name: 'token generate',
  audience: 'command',
  summary: 'Create tokens in the vault with synthetic data, for tests and demonstrations.',
  details:
    'The data is valid, belongs to nobody (test ranges of card numbers, reserved phone numbers and domains), and is the\nsame for the same --seed. The ids are random.',
  permissions: ['token:create'],
  input: closedInput([], {
    type: {
      type: 'string',
      enum: TOKEN_TYPE_NAMES,
      default: 'token',
      description: `One of ${TOKEN_TYPE_NAMES.join(', ')}.`,
    },
    count: {
      type: 'integer',
      minimum: 1,
      maximum: MOST_GENERATED,
      default: 1,
      description: 'How many, at most 10,000.',
    },
    seed: { type: 'integer', default: 1, description: 'A number; another one gives other data.' },
  }),
  output: arrayOf(tokenOutput),
  examples: ['coffer token generate --type card --count 5', 'coffer token generate --count 3 --seed 7'],
  log: { operation: 'create', message: 'Token created' },
  async runDetached(session, { type = 'token', count = 1, seed = 1 }) {
    const draw = createDraw(`${type}/${seed}`)
    // All data is drawn first, because a unit of work may run again.
    const drawn = Array.from({ length: count }, () => generateData(type, draw))
    const views: TokenView[] = []
    for (let left = count; left > 0; left -= AT_ONCE) {
      const some = await session.inUnit(async (context) => {
        const created: TokenView[] = []
        const { expressions, turns, now } = context
        const tools = { expressions, turns, now: async () => now }
        for (const data of drawn.slice(count - left, count - left + AT_ONCE)) {
          const made = await createFrom(context, await checkNewToken({ type, data }, tools))
          created.push(made instanceof Existing ? made.result : made)
        }
        return created
      })
      views.push(...some)
    }
    return views
  },
})
