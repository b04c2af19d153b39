import { FINAL_STATUSES } from '../../domain/threeds/enumerations.js'
import { decide, OUTCOMES, settle } from '../../domain/threeds/session.js'
import { viewSession } from '../../domain/threeds/view.js'
import { owner } from '../../framework/declaration.js'
import { change } from '../../framework/operation.js'
import { closedInput } from '../../framework/schema.js'
import { requireSession, storeChallenge, tellBySystem } from './changes.js'
import { DECIDE_EXAMPLE } from './examples.js'
import { sessionId } from './inputs.js'
import { sessionOutput } from './outputs.js'

export const decideInput = closedInput(['id'], {
  id: sessionId,
  outcome: {
    type: 'string',
    enum: OUTCOMES,
    description: `${FINAL_STATUSES.join(', ')}, cancelled or timed-out. Default: the outcome of the test card.`,
  },
})

export const decideSession = change({
  name: '3ds decide',
  summary: 'Decide a pending challenge as the bank, without a browser.',
  details: 'Then get the result: coffer 3ds result. In the log and in webhooks, the actor is the system.',
  access: owner,
  input: decideInput,
  output: sessionOutput,
  cli: { positionals: ['id'] },
  examples: [DECIDE_EXAMPLE],
  async run(context, { id, outcome }) {
    const { store, caller } = context
    const session = settle(await requireSession(store, caller.tenant, id), context.now)
    const told = await storeChallenge(context, caller.tenant, decide(session, outcome))
    context.enqueue(await tellBySystem(context, caller.tenant, told))
    return viewSession(told.session)
  },
})
