/** 3-D Secure: the bank of a card authenticates the cardholder. Coffer simulates the bank. */
import { isFinal, retrieveResult, settle } from '../../domain/threeds/session.js'
import { STEP_MESSAGES } from '../../domain/threeds/steps.js'
import { viewAuthentication, viewSession } from '../../domain/threeds/view.js'
import { owner, requires } from '../../framework/declaration.js'
import type { EncodedJson } from '../../framework/limits.js'
import { readList } from '../../framework/list.js'
import { change, list, query } from '../../framework/operation.js'
import { type List, listOutput, pageInput } from '../../framework/page.js'
import { type Infer, inputSchema } from '../../framework/schema.js'
import { authenticateSession } from './authenticate-session.js'
import { endIfDue, eventAbout, requireSession, storeSession, THREE_DS } from './changes.js'
import { createSession, updateSession } from './create-session.js'
import { decideSession } from './decide.js'
import { GET_EXAMPLE, RESULT_EXAMPLE } from './examples.js'
import { sessionId } from './inputs.js'
import { authenticationOutput, sessionOutput } from './outputs.js'

type SessionView = Infer<typeof sessionOutput>

const byId = inputSchema(['id'], { id: sessionId })

const getSession = query({
  name: '3ds get',
  summary: 'Get the session with this id.',
  access: { ...requires('3ds:session:read'), refusesSessions: true },
  route: 'GET /3ds/sessions/{id}',
  log: { operation: 'read', message: STEP_MESSAGES.read },
  input: byId,
  output: sessionOutput,
  examples: [GET_EXAMPLE],
  async run({ store, caller, audit }, { id }) {
    const session = await requireSession(store, caller.tenant, id)
    audit.record(THREE_DS, id)
    return viewSession(session)
  },
})

const listSessions = list({
  name: '3ds list',
  summary: 'List the sessions of the tenant, newest first.',
  access: owner,
  input: inputSchema([], pageInput(100)),
  output: listOutput(sessionOutput),
  examples: ['coffer 3ds list'],
  run: (session, paging) =>
    readList(
      session,
      { kind: THREE_DS, show: (_, record) => viewSession(record) as SessionView },
      paging,
    ) as Promise<List<SessionView> | EncodedJson>,
})

/** A `change`, because it stores that the result was retrieved. After that, the session contains the result. */
const getResult = change({
  name: '3ds result',
  summary: 'Get the result of a challenge that is over.',
  access: { ...requires('3ds:session:authenticate'), refusesSessions: true },
  route: 'GET /3ds/sessions/{id}/challenge-result',
  log: { operation: 'read', message: STEP_MESSAGES.retrieved },
  input: byId,
  output: authenticationOutput,
  examples: [RESULT_EXAMPLE],
  async run(context, { id }) {
    const { store, caller, audit } = context
    const { tenant, actor } = caller
    const stored = await requireSession(store, tenant, id)
    context.enqueue(await endIfDue(context, tenant, stored))
    const session = settle(await requireSession(store, tenant, id), context.now)
    const final = retrieveResult(session)
    if (!isFinal(session)) await storeSession(context, tenant, final, { by: actor.id })
    audit.record(THREE_DS, id)
    audit.emit(eventAbout('3ds.session.challenge-result-retrieved', final))
    return viewAuthentication(final)
  },
})

export const noun = {
  name: '3ds',
  summary: 'Authenticate cardholders with 3-D Secure, as a test bank',
  operations: [
    createSession,
    updateSession,
    getSession,
    authenticateSession,
    getResult,
    decideSession,
    listSessions,
  ],
}
