import { refuseErrors } from '../../domain/property-errors.js'
import type { ThreeDsSessionRecord } from '../../domain/records/records.js'
import type { ChallengePreference } from '../../domain/threeds/enumerations.js'
import { type AuthenticationRequest, checkAuthentication, chooseBrand } from '../../domain/threeds/request.js'
import { scenarioOf } from '../../domain/threeds/scenarios.js'
import { type AuthenticationWishes, isAuthenticated } from '../../domain/threeds/session.js'
import { STEP_MESSAGES } from '../../domain/threeds/steps.js'
import { viewAuthentication } from '../../domain/threeds/view.js'
import { conflict, invalid } from '../../errors.js'
import { requires } from '../../framework/declaration.js'
import { change } from '../../framework/operation.js'
import { requireSession, startAuthentication, tellByCaller } from './changes.js'
import { keepMetadata, refuseWrongMetadata } from './create-session.js'
import { AUTHENTICATE_EXAMPLE } from './examples.js'
import { authenticateInput } from './inputs.js'
import { authenticationOutput } from './outputs.js'
import { serviceFailed } from './service-error.js'

export const authenticateSession = change({
  name: '3ds authenticate',
  summary: 'Authenticate a session, once.',
  details:
    'The new status is final, challenge (a browser asks the cardholder) or decoupled_challenge (the bank asks without\n' +
    'a browser). After a challenge, get its result: coffer 3ds result.',
  access: { ...requires('3ds:session:authenticate'), refusesSessions: true },
  route: 'POST /3ds/sessions/{id}/authenticate',
  http: { mayFailOutside: true },
  log: { operation: 'update', message: STEP_MESSAGES.authenticated },
  input: authenticateInput,
  output: authenticationOutput,
  examples: [AUTHENTICATE_EXAMPLE],
  check: (input) => {
    const errors = checkAuthentication(input as AuthenticationRequest)
    refuseWrongMetadata(errors, input.metadata)
    refuseErrors(errors)
  },
  async run(context, { id, metadata, ...request }) {
    const { store, caller } = context
    const session = await requireSession(store, caller.tenant, id)
    if (isAuthenticated(session))
      throw conflict('This session is authenticated already. Create another session.')
    if (session.redirect !== undefined)
      throw conflict('Only the page at the redirect_url of this session can authenticate the session.')
    if (session.device === 'app' && session.device_info === undefined)
      throw invalid('device_info', 'is required first: send it with PUT /3ds/sessions/{id}')
    const asked = request as AuthenticationRequest
    refuseErrors(checkAuthentication(asked, session.type))
    const wishes = readWishes(session, asked)
    refuseAtAuthentication(session)
    const given = metadata === undefined ? session : withMetadata(session, metadata)
    const told = await startAuthentication(context, caller.tenant, given, wishes, { by: caller.actor.id })
    tellByCaller(context, told)
    return viewAuthentication(told.session)
  },
})

function withMetadata(session: ThreeDsSessionRecord, given: Record<string, string>): ThreeDsSessionRecord {
  const { metadata: _, ...rest } = session
  const metadata = keepMetadata(given)
  return { ...rest, ...(metadata && { metadata }) }
}

/**
 * Requires: the request is checked.
 * @throws CofferError `validation` if the card of the session does not have the brand in the request
 */
export function readWishes(
  session: ThreeDsSessionRecord,
  request: AuthenticationRequest,
): AuthenticationWishes {
  const { card_brand, challenge_preference, request_decoupled_challenge, merchant_info, purchase_info } =
    request
  const brand = card_brand === undefined ? undefined : chooseBrand(session, card_brand)
  if (card_brand !== undefined && brand === undefined)
    throw invalid('card_brand', `must be a brand of the card: ${session.brands.join(', ')}`)
  const texts = { merchant: merchant_info?.name, ...pick(purchase_info, ['amount', 'currency', 'exponent']) }
  const paid = Object.fromEntries(Object.entries(texts).filter(([, value]) => typeof value === 'string'))
  return {
    brand,
    challenge_preference: challenge_preference as ChallengePreference | undefined,
    request_decoupled_challenge,
    paid: Object.keys(paid).length === 0 ? undefined : paid,
  }
}

function pick(object: Readonly<Record<string, unknown>> = {}, names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, object[name]]))
}

/** @throws CofferError `threeds_failed` */
export function refuseAtAuthentication({ id, scenario }: ThreeDsSessionRecord): void {
  if (scenarioOf(scenario).failsAt !== 'authenticate') return
  throw serviceFailed({
    service_status: '502',
    session_id: id,
    error_source: 'Directory Server',
    message: 'The directory server failed.',
    detail: 'This test card makes each authentication fail. Create a session with another card.',
  })
}
